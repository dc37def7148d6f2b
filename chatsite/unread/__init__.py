"""What came into a person's conversations unseen, as a leaf app: replies, failures,
questions, and what other leaves have, such as reminders.
"""
