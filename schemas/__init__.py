"""What a record is: the shapes that cross a topic, how they are coded, and the policy document."""
