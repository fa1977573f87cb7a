"""``edgerag eval``: is the right passage found, is it said when there is none, and is the answer right?"""
