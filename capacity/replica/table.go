package replica

import (
	"math"
	"sort"

	"tuner/measure"
	"tuner/measure/arrivals"
	"tuner/search/queuesim"
)

// Table has the shares of requests that a replica answers within limits, by the rate at which it gets
// requests. A stationary rate is simulated for each row.
type Table struct {
	Rates  []float64   // requests/s of one replica, ascending
	Limits []float64   // s
	Shares [][]float64 // by limit, then by rate: 0..1, falling with the rate
}

// loads are the rates of a table as shares of the capacity. Latencies grow without bound towards 1.
func loads() []float64 {
	return []float64{0.05, 0.15, 0.3, 0.4, 0.5, 0.58, 0.65, 0.7, 0.75, 0.8, 0.84, 0.88, 0.91, 0.94, 0.97}
}

// Numbers of requests of a row. Above half the capacity, latencies depend on each other for longer.
const (
	requestsLow  = 2500
	requestsHigh = 6000
	halfBusy     = 0.5
)

// Surroundings say how requests reach a replica.
type Surroundings struct {
	Replicas   int // behind the balancer
	Balancer   queuesim.Balancer
	Dispersion float64 // of all requests (traffic.Traffic)
}

// Table simulates a replica among others at each rate. limits are in s.
func (x *Replica) Table(around Surroundings, limits []float64, seed uint64) Table {
	t := Table{Limits: limits, Shares: make([][]float64, len(limits))}
	servers := around.Replicas
	cv := math.Sqrt(max(around.Dispersion, 1))
	if around.Balancer == queuesim.Random {
		cv = math.Sqrt(Thinned(around.Dispersion, float64(servers)))
		servers = 1
	}
	var f queuesim.Fleet
	for _, share := range loads() {
		rate := share * x.Capacity
		t.Rates = append(t.Rates, rate)
		o := queuesim.Options{Requests: requestsLow, Seed: seed, Within: limits, Arrivals: clustered(rate*float64(servers), cv, seed)}
		if share > halfBusy {
			o.Requests = requestsHigh
		}
		r := f.Simulate(servers, around.Balancer, x.Batcher, x.Curve, measure.Load{RequestRate: rate * float64(servers), BatchSize: x.Rows}, o)
		for i := range limits {
			t.Shares[i] = append(t.Shares[i], r.Within[i])
		}
	}
	for _, shares := range t.Shares {
		fall(shares)
	}
	return t
}

// Thinned returns the dispersion of the requests of one of some servers, among which a random choice
// distributes those of a traffic. A part p of them has the dispersion 1 + p (dispersion − 1).
func Thinned(dispersion, servers float64) float64 { return 1 + (max(dispersion, 1)-1)/servers }

// Clustered returns arrivals whose distances have a coefficient of variation. Counts over long times
// then have the dispersion cv² (Cox and Lewis, The Statistical Analysis of Series of Events, 1966,
// §4.2). Where the clusters would not be noticed, the arrivals are Poisson's, and isClustered is false.
func Clustered(cv float64) (p arrivals.Pattern, isClustered bool) {
	const noticeable = 1.05
	if cv < noticeable {
		return arrivals.Pattern{}, false
	}
	return arrivals.Pattern{Kind: arrivals.GammaKind, CV: min(cv, arrivals.HighestCV)}, true
}

// clustered returns the instants of Clustered arrivals at a rate. nil: Poisson.
func clustered(rate, cv float64, seed uint64) queuesim.Arrivals {
	p, isClustered := Clustered(cv)
	if !isClustered {
		return nil
	}
	s, err := p.Schedule(rate, seed)
	if err != nil {
		return nil // the rate lies outside of what arrivals knows
	}
	return s
}

// fall makes shares fall, by means over neighbours that do not (pool adjacent violators, Barlow et al.,
// Statistical Inference under Order Restrictions, 1972). Simulations are random.
func fall(shares []float64) {
	type block struct {
		sum float64
		n   int
	}
	var blocks []block
	for _, s := range shares {
		blocks = append(blocks, block{s, 1})
		for k := len(blocks) - 1; k > 0 && blocks[k].sum*float64(blocks[k-1].n) > blocks[k-1].sum*float64(blocks[k].n); k-- {
			blocks[k-1] = block{blocks[k-1].sum + blocks[k].sum, blocks[k-1].n + blocks[k].n}
			blocks = blocks[:k]
		}
	}
	i := 0
	for _, b := range blocks {
		for range b.n {
			shares[i] = b.sum / float64(b.n)
			i++
		}
	}
}

// Quantile returns a quantile of a latency by the shares within limits, which ascend: log-linear between
// them. It returns false beyond the last limit.
func Quantile(q float64, limits []float64, share func(limit int) float64) (float64, bool) {
	before := 0.0
	for i, limit := range limits {
		now := share(i)
		if now < q {
			before = now
			continue
		}
		if i == 0 {
			return limit, true
		}
		return limits[i-1] * math.Pow(limit/limits[i-1], (q-before)/(now-before)), true
	}
	return 0, false
}

// Within returns the share of requests within a limit, by its index, at a rate in requests/s. It is
// linear between the rates.
func (t *Table) Within(limit int, rate float64) float64 {
	shares := t.Shares[limit]
	i := sort.SearchFloat64s(t.Rates, rate)
	switch {
	case i == 0:
		return shares[0]
	case i == len(t.Rates):
		return shares[i-1]
	}
	return shares[i-1] + (shares[i]-shares[i-1])*(rate-t.Rates[i-1])/(t.Rates[i]-t.Rates[i-1])
}

// Highest returns the highest rate of the table.
func (t *Table) Highest() float64 { return t.Rates[len(t.Rates)-1] }

// Safe returns the highest rate at which a share of the requests keeps a limit, by its index; 0
// without one.
func (t *Table) Safe(limit int, share float64) float64 {
	shares := t.Shares[limit]
	i := sort.Search(len(shares), func(i int) bool { return shares[i] < share })
	switch {
	case i == 0:
		return 0
	case i == len(shares):
		return t.Highest()
	}
	return t.Rates[i-1] + (t.Rates[i]-t.Rates[i-1])*(shares[i-1]-share)/(shares[i-1]-shares[i])
}
