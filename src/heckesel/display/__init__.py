"""How results are shown: numbers as text, and tables in HTML, LaTeX and Markdown."""
