package capacity

import "math"

// Verification compares the simulation with a replay: a piece of the worst hour at its true rates, on
// real servers behind the plan's balancer.
type Verification struct {
	Server   string  `json:"server"`                                   // what served, for people
	Engines  int     `json:"engines" jsonschema:"minimum=1"`           // number of servers
	Replicas float64 `json:"replicas" jsonschema:"exclusiveMinimum=0"` // mean number of the plan's replicas in that time
	Begin    float64 `json:"begin" jsonschema:"minimum=0"`             // where the piece begins, in seconds since the beginning of the traffic
	Length   float64 `json:"length" jsonschema:"exclusiveMinimum=0"`   // its length
	// rate of a replica in the plan, mean
	PlannedRate float64 `json:"planned_rate" jsonschema:"minimum=0"`
	// rate of a server in the replay, mean: the planned one by the capacity
	Rate float64 `json:"rate" jsonschema:"minimum=0"`
	// capacity of a replica of the plan over that of a server here, with the others idle
	Slowness float64 `json:"slowness" jsonschema:"exclusiveMinimum=0"`
	// the servers got their requests one after the other, since the machine has not the cores of all
	InTurn bool `json:"in_turn,omitempty"`
	// time of a request with all servers busy over that of their simulation on shared cores: its times under load are
	// multiplied by it too; absent if they were never busy together
	Sharing float64 `json:"sharing,omitempty" jsonschema:"minimum=0"`
	// capacity of the servers here over that of as many replicas, at most 1: rates are multiplied by it, and the limit is
	// divided by it
	Capacity  float64    `json:"capacity" jsonschema:"exclusiveMinimum=0"`
	Cores     float64    `json:"cores,omitempty" jsonschema:"minimum=0"`  // that the servers share
	Limit     float64    `json:"limit" jsonschema:"exclusiveMinimum=0"`   // limit on the latency in the replay
	Requests  int        `json:"requests" jsonschema:"minimum=0"`         // number of requests
	Failed    int        `json:"failed,omitempty" jsonschema:"minimum=0"` // of these without an answer
	Late      int        `json:"late,omitempty" jsonschema:"minimum=0"`   // of these sent more than a millisecond after their instant
	Simulated Latencies  `json:"simulated"`                               // prediction for the instants at which the requests were sent
	Measured  Latencies  `json:"measured"`                                // what the clients saw, since each sending
	P99Range  [2]float64 `json:"measured_p99_range"`                      // 95 % interval of the measured 99th percentile
	// cores that sending took beyond what the campaign's clients take for as many requests; the simulation has them too
	Sender float64 `json:"sender,omitempty" jsonschema:"minimum=0"`
	// simulated 99th percentile if sending took nothing beyond that
	WithoutSender float64 `json:"simulated_p99_without_sender,omitempty" jsonschema:"minimum=0"`
	Outcome       Outcome `json:"outcome" jsonschema:"enum"` // whether the measured 99th percentile is the simulated one, up to 10 %
}

// Latencies are figures of the latency of requests.
type Latencies struct {
	P50    float64 `json:"latency_p50" jsonschema:"minimum=0"`      // median
	P99    float64 `json:"latency_p99" jsonschema:"minimum=0"`      // 99th percentile
	Within float64 `json:"within" jsonschema:"minimum=0,maximum=1"` // share within the limit
}

// Outcome is the verdict of a replay on a plan.
type Outcome string

// The outcomes.
const (
	Confirmed Outcome = "confirmed" // the measured 99th percentile is the simulated one
	Careful   Outcome = "careful"   // it is shorter
	Refuted   Outcome = "refuted"   // it is longer
	// it differs, and sending the requests alone may have changed it as much: a plan's replica shares its machine with no
	// sender
	Unclear Outcome = "unclear"
)

// Agreement is the relative difference of the 99th percentiles up to which a replay confirms a plan.
const Agreement = 0.10

// Judge returns the outcome of a replay. A measured percentile with an interval that reaches the
// allowed differences counts as equal.
func (v *Verification) Judge() Outcome {
	low, high := (1-Agreement)*v.Simulated.P99, (1+Agreement)*v.Simulated.P99
	isLonger := v.Failed > 0 || math.IsNaN(v.Measured.P99) || v.P99Range[0] > high
	switch {
	case !isLonger && v.P99Range[1] >= low:
		return Confirmed
	case v.SenderCounts():
		return Unclear
	case isLonger:
		return Refuted
	}
	return Careful
}

// SenderCounts reports whether sending the requests changed the simulated 99th percentile by more than an agreement
// allows.
func (v *Verification) SenderCounts() bool {
	return v.WithoutSender > 0 && math.Abs(v.Simulated.P99/v.WithoutSender-1) > Agreement
}
