"""`edgerag bench ask | embed | all`: the questions of the field, answered on the machine at hand.

Each part is one question: it measures two or more ways by turns, keeps every measurement, and says what it saw.
"""
