package stats

// WithinGroups returns the sums of least squares within groups: products is Σ(x−x̄)·(y−ȳ), squares
// is Σ(x−x̄)². x̄ and ȳ are the means of the value's own group. products/squares is the slope that
// all groups share. groups, x and y have equal lengths.
func WithinGroups[G comparable](groups []G, x, y []float64) (products, squares float64) {
	w := within(groups, x, y)
	return w.xy, w.xx
}

// deviations holds the sums of products and squares within groups. freedom is the number of values
// beyond one per group and one for the slope.
type deviations struct {
	xy, xx, yy float64
	freedom    int
}

func within[G comparable](groups []G, x, y []float64) deviations {
	type sums struct{ count, x, y float64 }
	all := map[G]sums{} // for lookup only
	for i, g := range groups {
		s := all[g]
		all[g] = sums{s.count + 1, s.x + x[i], s.y + y[i]}
	}
	var d deviations
	for i, g := range groups {
		s := all[g]
		dx, dy := x[i]-s.x/s.count, y[i]-s.y/s.count
		d.xy, d.xx, d.yy = d.xy+dx*dy, d.xx+dx*dx, d.yy+dy*dy
	}
	d.freedom = max(0, len(groups)-len(all)-1)
	return d
}
