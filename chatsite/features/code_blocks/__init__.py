"""Code blocks in replies: long ones are folded, drawings and web pages rendered."""
