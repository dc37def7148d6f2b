"""What came into a person's conversations unseen: replies, failures,
questions, and what other apps have, such as reminders.
"""
