package stats

// WithinGroups is what least squares within groups are made of: the sums of products Σ(x−x̄)·(y−ȳ) and of squares Σ(x−x̄)², each value against the mean
// of its own group. Their ratio is the slope that all groups share. groups, x and y are equally long.
func WithinGroups[G comparable](groups []G, x, y []float64) (products, squares float64) {
	type sums struct{ count, x, y float64 }
	all := map[G]sums{} // only looked up
	for i, g := range groups {
		s := all[g]
		all[g] = sums{s.count + 1, s.x + x[i], s.y + y[i]}
	}
	for i, g := range groups {
		s := all[g]
		dx, dy := x[i]-s.x/s.count, y[i]-s.y/s.count
		products, squares = products+dx*dy, squares+dx*dx
	}
	return products, squares
}
