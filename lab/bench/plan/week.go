package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"tuner/capacity/traffic"
)

// week makes the rates of a service for seven days from Monday on, in requests/s for each step: a wave
// of each day, a weaker weekend, a slow drift, and bursts. Its shape is that of published traces of web
// services (Wikipedia's of 2007, the World Cup's of 1998): the peak is four times the trough, and the
// weekend has 70 % of a working day.
func week(peak float64, seed uint64) []float64 {
	random := rand.New(rand.NewPCG(seed, 0))
	rates := make([]float64, 7*traffic.PerDay)
	drift := 0.0
	const (
		memory  = 0.999 // of the drift from step to step: it forgets within four hours
		swing   = 0.05  // standard deviation of the drift's logarithm
		weekend = 0.7
	)
	for i := range rates {
		hour := float64(i%traffic.PerDay) / float64(traffic.PerDay) * 24
		wave := 0.62 + 0.33*math.Sin(2*math.Pi*(hour-9)/24) + 0.05*math.Sin(4*math.Pi*(hour-4)/24)
		if i/traffic.PerDay >= 5 {
			wave *= weekend
		}
		drift = memory*drift + math.Sqrt(1-memory*memory)*swing*random.NormFloat64()
		rates[i] = peak * wave * math.Exp(drift)
	}
	addBursts(rates, random)
	return rates
}

// addBursts multiplies the rates for some minutes, three times a day on average: each grows within two
// minutes and fades within ten.
func addBursts(rates []float64, random *rand.Rand) {
	const perDay, grows, fades = 3, 8, 40 // grows and fades are in steps
	for at := 0; at < len(rates); {
		at += int(random.ExpFloat64() * float64(traffic.PerDay) / perDay)
		height := 0.2 + 0.6*random.Float64()
		for i := 0; i < grows+4*fades && at+i < len(rates); i++ {
			x := float64(i) / grows
			if i > grows {
				x = math.Exp(-float64(i-grows) / fades)
			}
			rates[at+i] *= 1 + height*x
		}
		at++
	}
}

// read turns rates into a traffic, by the way of a file.
func read(rates []float64, seed uint64) (traffic.Traffic, error) {
	var b strings.Builder
	b.WriteString("timestamp,rate\n")
	for i, rate := range rates {
		fmt.Fprintf(&b, "%d,%.3f\n", i*int(traffic.Step.Seconds()), rate)
	}
	return traffic.Parse(strings.NewReader(b.String()), seed)
}
