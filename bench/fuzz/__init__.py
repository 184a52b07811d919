"""Fuzzing of everything that reads what others wrote; ``scripts/fuzz``.

``targets`` says what is fed, ``mutate`` makes inputs of the fixtures, ``run`` drives processes and keeps what crashed.
"""
