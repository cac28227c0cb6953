"""What the tiny generative models are asked: prompts that they learned with, and a new one."""

from biaslib.models.generative import PROMPTS, Prompts

ASKED = {
    "trained": PROMPTS,
    "trained, short": Prompts(describe="Write a caption."),
    "untrained": Prompts(
        describe="Answer in one sentence.",
        choose="Answer with the letter alone.\n{options}\nWhich caption fits the picture?",
        judge='Answer yes or no. Does the picture fit the caption "{caption}"?',
    ),
}
"""Two prompts before captions that the models learned with; and words that they know, in an order
in which they never read them."""
