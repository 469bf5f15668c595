package stats

// WithinGroups is what least squares within groups are made of: the sums of products Σ(x−x̄)·(y−ȳ) and of squares Σ(x−x̄)², each value against the mean
// of its own group. Their ratio is the slope that all groups share. groups, x and y are equally long.
func WithinGroups[G comparable](groups []G, x, y []float64) (products, squares float64) {
	w := within(groups, x, y)
	return w.xy, w.xx
}

// deviations are the sums of products and squares within groups, and how many values there are beyond one of each group and a slope.
type deviations struct {
	xy, xx, yy float64
	freedom    int
}

func within[G comparable](groups []G, x, y []float64) deviations {
	type sums struct{ count, x, y float64 }
	all := map[G]sums{} // only looked up
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
