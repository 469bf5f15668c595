package accuracy

// StoredFigures is for the test of the page, which package accuracy itself cannot hold: it imports
// packages that import this one.
type StoredFigures = storedFigures
