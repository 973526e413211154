"""Labels that need nobody's word: is an answer at least as good as the largest candidate's?"""
