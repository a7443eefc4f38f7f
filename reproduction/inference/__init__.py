"""Experiments on tests: do they keep their level, and is their stated power right?"""
