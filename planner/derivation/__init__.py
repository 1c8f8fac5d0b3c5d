"""What the derived-cost forms of all papers share: the hardware they name, their files, the account of prices."""
