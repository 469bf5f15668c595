package measure

import (
	"math"

	"tuner/measure/stats"
)

// Tail is a latency percentile and its error, both on log scale.
type Tail struct {
	Log       float64 // natural logarithm of the percentile in seconds
	Deviation float64 // standard deviation of Log
	// Independent is the number of independent latencies that the measurement is worth for this
	// percentile. It may be far below the number of requests, since those of one batch end
	// together.
	Independent float64
	// IsExtrapolated is true if the percentile comes from the shape of the tail, since too few
	// latencies lie above it.
	IsExtrapolated bool
}

// exceedances is the number of latencies that must lie above a percentile to read it off the
// sample. With fewer, the tail is extrapolated from that number of latencies. For an exponential
// tail both ways have the same error at 10. With 20, a p99 would be extrapolated below 2,000
// requests.
const exceedances = 10

// Tail estimates the q-quantile (0 < q < 1) of the latencies. If enough latencies lie above it, it
// is the sample's quantile. With fewer, the largest latency hardly tells where the percentile is.
// Then the tail above a lower quantile q0 is taken as exponential on log scale (Hill, Annals of
// Statistics 3, 1975; Weissman, JASA 73, 1978):
//
//	ln x(q) = ln x(q0) + H·ln((1−q0)/(1−q)),  H = mean of ln(x/x(q0)) over the k latencies above x(q0)
//
// The standard deviation is H·√((1 + ln²((1−q0)/(1−q)))/k). The requests of one batch, and of one
// disturbance, end together, so k counts independent latencies. If enough independent latencies lie
// above the quantile, the error is that of the order statistics. Tail returns false when no request
// completed.
func (m Measurement) Tail(q float64) (Tail, bool) {
	l := m.latencies()
	count := float64(l.all.Count())
	if count == 0 {
		return Tail{}, false
	}
	t := Tail{Independent: min(m.effective(l, q), count), IsExtrapolated: count*(1-q) < exceedances}
	if t.IsExtrapolated {
		from, hill := l.tail(count, q)
		t.Log = math.Log(l.all.Quantile(from).Seconds()) + hill*math.Log((1-from)/(1-q))
	} else {
		t.Log = math.Log(l.all.Quantile(q).Seconds())
	}
	if t.Independent*(1-q) >= exceedances {
		e, _ := m.percentile(l, q)
		t.Deviation = math.Log(e.Hi/e.Lo) / (2 * stats.Half95)
		return t, true
	}
	from, hill := l.tail(t.Independent, q)
	reach := math.Log((1 - from) / (1 - q))
	t.Deviation = hill * math.Sqrt((1+reach*reach)/max(t.Independent*(1-from), 1))
	return t, true
}

// tail returns the quantile at which the tail begins if n latencies count. hill is the mean of the
// logarithms by which the latencies above exceed it.
func (l latencies) tail(n, q float64) (from, hill float64) {
	from = min(max(1-exceedances/n, 0.5), q)
	return from, l.all.logExcess(l.all.Quantile(from))
}

// Needed returns the number of independent latencies that bound the q-quantile from above with 95 %
// confidence. With fewer, the chance that all of them lie below the quantile is above 5 %. It is
// 299 for the 99th percentile.
func Needed(q float64) int { return int(math.Ceil(math.Log(0.05) / math.Log(q))) }
