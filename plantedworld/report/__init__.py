"""Figures and tables of the verdicts on measures: truth and estimates -> what a person sees."""
