package capacity

import "testing"

// A simulated p99 of 100 ms allows 90 to 110 ms.
func TestJudge(t *testing.T) {
	t.Parallel()
	check := func(measured, low, high float64, failed int, want Outcome) {
		t.Helper()
		v := Verification{
			Simulated: Latencies{P99: 0.1}, WithoutSender: 0.1, Measured: Latencies{P99: measured}, P99Range: [2]float64{low, high}, Failed: failed,
		}
		if got := v.Judge(); got != want {
			t.Errorf("p99 %g [%g, %g], %d failed: %s, want %s", measured, low, high, failed, got, want)
		}
		if want != Confirmed { // sending is a tenth of the 99th percentile, or a little more
			want = Unclear
		}
		if v.WithoutSender = 0.0905; v.Judge() != want {
			t.Errorf("p99 %g [%g, %g] with much sending: %s, want %s", measured, low, high, v.Judge(), want)
		}
	}
	check(0.105, 0.103, 0.108, 0, Confirmed)
	check(0.13, 0.109, 0.16, 0, Confirmed)
	check(0.13, 0.112, 0.16, 0, Refuted)
	check(0.08, 0.07, 0.089, 0, Careful)
	check(0.08, 0.07, 0.091, 0, Confirmed)
	check(0.1, 0.09, 0.11, 1, Refuted)
}
