package main

import "tuner/lab/published"

// rival is a published model on which campaigns are compared.
type rival struct {
	subject
	made published.Model
}

// rivals returns models of four speeds: below 1 ms, 5–10 ms, 20–50 ms and 80–200 ms per inference
// on one core.
func rivals() []rival {
	of := func(m published.Model, batches bool, shapes ...string) rival {
		return rival{subject{Name: m.Name, File: m.File(), Shapes: shapes, Batches: batches, profile: publishedText}, m}
	}
	return []rival{
		of(published.LineDirection, true, "x:3,48,192"),
		of(published.FileType, true),
		of(published.LineText, true, "x:3,48,320"),
		of(published.PageDetector, false),
	}
}
