"""A recorded conversation, replayed under a policy, and what that costs and keeps."""
