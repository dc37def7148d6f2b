"""The wait of one user for the first word while another one attacks an entrance.

`python -m bench.neighbours [ENTRANCE ...]`; entrances.py has the entrances.
"""
