"""What raters read unless a study says otherwise: the question, the scale and the instructions."""

QUESTION = "How plausible is this statement?"

SCALE = (
    "makes no sense",
    "very unlikely",
    "unlikely",
    "possible",
    "likely",
    "very likely",
)

INSTRUCTIONS = """\
You will read short statements that give a cause and an effect. Please say how plausible each one is, from 0 to 5.

Judge only whether the one could well be the reason for the other in everyday life. It need not be the best or the
only reason, and you need not know the people or the place.

Small slips of grammar do not matter as long as you understand what is meant. A statement that you cannot make
sense of gets 0.

A 5: "The path was covered in ice, so she walked slowly." This is what one would expect.

A 3: "The path was covered in ice, so she sang a song." It may be, but nothing suggests it.

A 0: "The path was covered in ice, so the spoon forgot its name." This makes no sense.

A few statements only check that you are reading; please do what they say. Use the whole scale, follow your first
impression, and judge each statement by itself.
"""
