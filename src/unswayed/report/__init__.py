"""What is shown: figures now; tables and pages come with the bench."""
