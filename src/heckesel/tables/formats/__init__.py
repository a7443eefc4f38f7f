"""One reader per file format of tables: CSV text, typed files and databases."""
