"""A bundle: everything that a machine without a network needs, in one folder or file, checked and signed.

carried/       what travels with the bundle and installs it there: Python's own library and nothing else
targets.py     for which machines and Pythons; which wheels they take
wheel.py       one wheel: its name, metadata, licences, and which C library it needs
closure.py     which wheels a target needs
gather.py      where they come from: folders, what was built here, pip
own_wheel.py   edgerag's own wheel: built from the checkout, or put together again from what is installed
licences.py    the licence texts found in the wheels
sbom.py        the bill of materials (CycloneDX)
keys.py        secret keys, and signing (minisign's formats)
write.py       the folder or the .tar file
create.py      all of it, in order
"""
