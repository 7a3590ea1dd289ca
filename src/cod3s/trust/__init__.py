"""Judge sources before they are answered: do they speak of people who suffer, are they English statements?"""
