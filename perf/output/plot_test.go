package output

import (
	"bytes"
	"errors"
	"image/color"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"tuner/internal/plotstyle"
	"tuner/measure"
	"tuner/perf"
)

// drawn counts the colours of a picture, at every third pixel in both directions, which still meets
// the thinnest line.
func drawn(t *testing.T, r perf.Report) map[color.Color]int {
	t.Helper()
	var b bytes.Buffer
	if err := Plot(&b, r); err != nil {
		t.Fatal(err)
	}
	picture, err := png.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[color.Color]int{}
	for y := 0; y < picture.Bounds().Dy(); y += 3 {
		for x := 0; x < picture.Bounds().Dx(); x += 3 {
			seen[color.RGBAModel.Convert(picture.At(x, y))]++
		}
	}
	return seen
}

func TestPlot(t *testing.T) {
	t.Parallel()
	empty := drawn(t, perf.Report{Settings: closedSettings(), Best: -1})
	if n := empty[levelColors[0]]; n > 0 {
		t.Errorf("%d pixels of a level where there is none", n)
	}
	// One of two windows has a flag. The failed level has none. There is no limit.
	one := drawn(t, closedReport())
	if one[levelColors[0]] == 0 || one[flagColor] == 0 || one[levelColors[1]] > 0 || one[plotstyle.LimitColor] > 0 {
		t.Errorf("dots: curve %d, flag %d, second curve %d, limit %d", one[levelColors[0]], one[flagColor], one[levelColors[1]], one[plotstyle.LimitColor])
	}
	if limited := drawn(t, openReport()); limited[plotstyle.LimitColor] == 0 {
		t.Error("the limit is not drawn")
	}
	if err := Plot(&full{room: 10}, openReport()); !errors.Is(err, errFull) {
		t.Errorf("a full disk gives %v", err)
	}
}

func TestPercentileTicks(t *testing.T) {
	t.Parallel()
	want := []string{"0 %", "50 %", "90 %", "99 %", "99.9 %", "99.99 %"}
	ticks := percentileTicks(4.2)
	if len(ticks) != len(want) {
		t.Fatalf("%d ticks, want %d", len(ticks), len(want))
	}
	for i, tick := range ticks {
		if tick.Label != want[i] {
			t.Errorf("tick %d is %q, want %q", i, tick.Label, want[i])
		}
	}
}

// TestPictures writes pictures for inspection by eye: TUNER_PICTURES=dir go test ./perf/output -run
// Pictures.
func TestPictures(t *testing.T) {
	dir := os.Getenv("TUNER_PICTURES")
	if dir == "" {
		t.Skip("set TUNER_PICTURES to a folder to write the pictures there and look at them")
	}
	many := perf.Report{Settings: closedSettings(), Best: -1}
	random := rand.New(rand.NewPCG(1, 2))
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for level := 1; level <= 8; level++ {
		l := perf.Level{Load: measure.Load{Concurrency: level, BatchSize: 1}, Begin: start.Add(time.Duration(level) * 7 * time.Second)}
		for i := range 5 {
			var latencies []time.Duration
			for range 300 {
				latency := float64(level)*4 + 3*random.ExpFloat64()
				latencies = append(latencies, time.Duration(latency*float64(ms)))
			}
			w := window(time.Duration(i+2)*time.Second, 0, latencies...)
			if level == 3 && i > 2 {
				w.Flags = []measure.Flag{measure.FlagForeign}
			}
			l.Measurement.Windows = append(l.Measurement.Windows, w)
		}
		many.Levels = append(many.Levels, l)
	}
	many.Settings.LatencyLimit = 30 * ms
	for name, r := range map[string]perf.Report{"one": closedReport(), "open": openReport(), "many": many, "empty": {Settings: closedSettings(), Best: -1}} {
		file, err := os.Create(filepath.Join(dir, name+".png"))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(Plot(file, r), file.Close()); err != nil {
			t.Error(err)
		}
	}
}
