"""Colours of figures: ink can be read in both modes, and a colour means one thing."""

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from biaslib import display
from companion import published_numbers
from companion._shared import DOSE_COLOURS

HALF_A_TURN = np.array([[-0.574, 1.43, 0.144], [0.426, 0.43, 0.144], [0.426, 1.43, -0.856]])
"""What ``hue-rotate(180deg)`` of book/static/custom.css makes of red, green and blue."""


def dark(colour):
    """Return a figure's colour on a dark page: turned round, its hue kept."""
    return np.clip(HALF_A_TURN @ (1 - np.asarray(to_rgb(colour))), 0, 1)


def contrast(one, other):
    lights = []
    for colour in (one, other):
        channels = np.asarray(to_rgb(colour))
        linear = np.where(
            channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4
        )
        lights.append(linear @ (0.2126, 0.7152, 0.0722) + 0.05)
    return max(lights) / min(lights)


@pytest.mark.parametrize("place", np.linspace(0, 1, 9))
def test_numbers_of_a_heat_map_can_be_read_in_light_and_dark(place):
    cell = published_numbers._pastel()(place)[:3]
    assert contrast(cell, "black") > 4.5
    assert contrast(dark(cell), dark("black")) > 4.5


def test_strengths_of_bias_and_genders_have_colours_of_their_own():
    colours = [*display.GROUP_COLOURS.values(), *DOSE_COLOURS.values()]
    assert len(set(colours)) == 5
