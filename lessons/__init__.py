"""The teaching pages: their small worlds, their figures, and the lesson that runs in the browser."""
