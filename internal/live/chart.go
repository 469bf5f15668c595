package live

import "math"

// Chart draws points in a plane, as rows of characters.
type Chart struct {
	X, Y   Axis
	Points []Point
	// Limit is a value of Y that points should not exceed. It is a line of the chart; 0: none.
	Limit float64
	Marks Marks
	// IsTradeoff means that more of X and less of Y are better. A page then draws the chart like the
	// one of report.html. Otherwise X tells the order of the measurements.
	IsTradeoff bool

	spell func(string) string
}

// Marks say what the marks of points mean. A chart without a meaning for a mark has no such points.
type Marks struct{ Kept, Missed, Best string }

// Axis names a coordinate, and formats its values.
type Axis struct {
	Name   string
	Unit   string // of the values: a base unit, such as "s"
	Format func(float64) string
}

// Point is a measurement, with coordinates ≥ 0.
type Point struct {
	X, Y   float64
	Text   string // what was measured
	IsKept bool   // its mark is Marks.Kept, else Marks.Missed
	IsBest bool   // its mark is Marks.Best
}

// wideRatio is the ratio of the largest to the smallest value of Y from which on the axis is
// logarithmic. On a linear axis one slow point would press all others into a single row.
const wideRatio = 8

// lines draws the chart. It is empty without points, or without room for it.
func (c Chart) lines(s signs, columns, rows int) []Line {
	const axes = 1 // rows below the plane
	if len(c.Points) == 0 || rows <= axes {
		return nil
	}
	lo, hi, most := c.ranges()
	top, bottom, limit := c.text(c.Y, hi), c.text(c.Y, lo), ""
	if c.Limit > 0 {
		limit = c.text(c.Y, c.Limit)
	}
	margin := max(width(top), width(bottom), width(limit)) + 1
	g := newGrid(columns-margin-1, rows-axes)
	place := func(y float64) int { return g.rows - 1 - scaled(ratio(y, lo, hi), g.rows) }
	if c.Limit > 0 {
		g.rule(place(c.Limit), s.limit)
	}
	for _, p := range c.sorted() {
		mark, style := s.missed, Faint
		switch {
		case p.IsBest:
			mark, style = s.best, Good
		case p.IsKept:
			mark, style = s.kept, Normal
		}
		g.put(place(p.Y), scaled(p.X/most, g.columns), mark, style)
	}
	var lines []Line
	for row := range g.rows {
		label := ""
		switch {
		case limit != "" && row == place(c.Limit):
			label = limit
		case row == 0:
			label = top
		case row == g.rows-1:
			label = bottom
		}
		label = repeat(" ", margin-1-width(label)) + label + " " + string(s.frame)
		lines = append(lines, append(Line{{label, Faint}}, g.line(row)...))
	}
	return append(lines, c.below(s, columns, margin, most))
}

// below is the line of the horizontal axis: its name, the vertical axis' name, and its end. Where it
// tells the order of two kinds of measurements, it names the second one.
func (c Chart) below(s signs, columns, margin int, most float64) Line {
	end := " " + c.text(c.X, most)
	second := ""
	if !c.IsTradeoff && c.Marks.Missed != "" {
		second = " (" + string(s.missed) + " " + c.spell(c.Marks.Missed) + ")"
	}
	name := " " + c.spell(c.Y.Name) + second + " over " + c.spell(c.X.Name) + " "
	fill := columns - margin - 1 - width(name) - width(end)
	return Line{{repeat(" ", margin) + string(s.corner) + name + repeat(string(s.floor), fill) + end, Faint}}
}

func (c Chart) text(a Axis, x float64) string { return c.spell(a.Format(x)) }

// ranges returns the range of Y, which contains the limit, and the largest X, which is above 0.
func (c Chart) ranges() (lo, hi, most float64) {
	lo, hi = c.Points[0].Y, c.Points[0].Y
	for _, p := range c.Points {
		lo, hi, most = min(lo, p.Y), max(hi, p.Y), max(most, p.X)
	}
	if c.Limit > 0 {
		lo, hi = min(lo, c.Limit), max(hi, c.Limit)
	}
	if most == 0 {
		most = 1
	}
	return lo, hi, most
}

// sorted returns the points in the order of drawing: what matters most comes last, and stays
// visible.
func (c Chart) sorted() []Point {
	var missed, kept, best []Point
	for _, p := range c.Points {
		switch {
		case p.IsBest:
			best = append(best, p)
		case p.IsKept:
			kept = append(kept, p)
		default:
			missed = append(missed, p)
		}
	}
	return append(append(missed, kept...), best...)
}

// ratio returns the place of a value between two others, 0..1.
func ratio(x, lo, hi float64) float64 {
	switch {
	case hi <= lo:
		return 0.5
	case lo > 0 && hi/lo >= wideRatio:
		return math.Log(x/lo) / math.Log(hi/lo)
	}
	return (x - lo) / (hi - lo)
}

// scaled returns the cell of a share among n.
func scaled(share float64, n int) int {
	return max(0, min(n-1, int(math.Round(share*float64(n-1)))))
}

// grid is a plane of characters.
type grid struct {
	columns, rows int
	cells         [][]Span
}

func newGrid(columns, rows int) grid {
	g := grid{columns: max(columns, 1), rows: max(rows, 1)}
	for range g.rows {
		row := make([]Span, g.columns)
		for i := range row {
			row[i] = Span{" ", Normal}
		}
		g.cells = append(g.cells, row)
	}
	return g
}

func (g grid) put(row, column int, mark rune, style Style) {
	g.cells[row][column] = Span{string(mark), style}
}

func (g grid) rule(row int, mark rune) {
	for column := range g.columns {
		g.put(row, column, mark, Faint)
	}
}

// line joins neighbours of one style.
func (g grid) line(row int) Line {
	var l Line
	for _, cell := range g.cells[row] {
		if last := len(l) - 1; last >= 0 && l[last].Style == cell.Style {
			l[last].Text += cell.Text
			continue
		}
		l = append(l, cell)
	}
	return l
}
