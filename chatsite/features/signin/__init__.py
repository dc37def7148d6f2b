"""Sign-in without a password, and account recovery: e-mail links and invitations."""
