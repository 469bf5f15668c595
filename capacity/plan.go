package capacity

import (
	"tuner/measure"
	"tuner/search/queuesim"
)

// Format is the version of a plan's JSON form. It grows when a field changes its meaning or disappears.
const Format = 1

// Status tells whether a plan keeps the limit.
type Status string

// The statuses of a plan.
const (
	Satisfied  Status = "satisfied"  // the chosen fleet keeps the limit
	Infeasible Status = "infeasible" // no fleet within the bounds does
)

// Plan is the answer: which fleet serves a traffic at the lowest cost. Times are seconds, rates are
// requests per second. Shares are 0 to 1.
type Plan struct {
	Format  int    `json:"format" jsonschema:"const=1"` // version of this format: 1
	Status  Status `json:"status" jsonschema:"enum"`    // whether the chosen fleet keeps the limit; infeasible: no fleet within the bounds does
	Summary string `json:"summary"`                     // the answer in a few sentences
	Model   string `json:"model"`                       // served name of the model
	Asked   Asked  `json:"asked"`                       // the question
	// the chosen fleet; of an infeasible plan, the fleet with the highest share
	Best Fleet `json:"best"`
	// the fleets with the nearest costs that differ in one thing, the nearest first
	Alternatives []Fleet `json:"alternatives"`
	// the same configuration with a HorizontalPodAutoscaler on 80 % of the processor time and Kubernetes'
	// defaults; absent where the result has no processor time
	Usual *Fleet `json:"usual,omitempty"`
	// what the default configuration needs with such an autoscaler; absent where the result has no
	// processor time, or the configuration is the default
	UsualDefault *Fleet `json:"usual_default,omitempty"`
	// a fleet whose number of replicas follows the traffic of each step at once, for comparison: nobody
	// knows the traffic beforehand
	Clairvoyant    Fleet       `json:"clairvoyant"`
	Configurations []Candidate `json:"configurations"` // configurations that were considered, the cheapest first
	// a replay on real servers; absent unless it was asked for
	Verification *Verification `json:"verification,omitempty"`
	Notes        []string      `json:"notes,omitempty"` // remarks, in sentences
}

// Asked is the question of a plan.
type Asked struct {
	Traffic     string            `json:"traffic"`                                                  // the traffic, for people
	Days        float64           `json:"days" jsonschema:"exclusiveMinimum=0"`                     // its length in days
	Requests    float64           `json:"requests" jsonschema:"minimum=0"`                          // number of its requests
	Mean        float64           `json:"mean_rate" jsonschema:"minimum=0"`                         // mean rate
	Peak        float64           `json:"peak_rate" jsonschema:"minimum=0"`                         // highest rate of a step
	Dispersion  float64           `json:"dispersion" jsonschema:"minimum=1"`                        // variance over mean of the requests in a second; 1: independent users
	Limit       float64           `json:"limit" jsonschema:"exclusiveMinimum=0"`                    // limit on the latency of a request
	Share       float64           `json:"share" jsonschema:"exclusiveMinimum=0,exclusiveMaximum=1"` // share of the requests that must keep it
	Balancer    queuesim.Balancer `json:"balancer" jsonschema:"enum"`                               // how requests are spread over replicas
	Scaler      Scaler            `json:"autoscaler" jsonschema:"enum"`                             // what changes the number of replicas
	Window      float64           `json:"metric_window" jsonschema:"exclusiveMinimum=0"`            // time over which the autoscaler's metric is a mean
	MinReplicas int               `json:"min_replicas" jsonschema:"minimum=1"`                      // least allowed number of replicas
	MaxReplicas int               `json:"max_replicas" jsonschema:"minimum=1"`                      // largest allowed number of replicas
	Step        float64           `json:"step" jsonschema:"exclusiveMinimum=0"`                     // length of a step of the simulation, the autoscaler's sync period
	Seed        uint64            `json:"seed"`                                                     // seed of all random numbers
}

// Fleet is a set of replicas whose size follows the traffic, with its cost and its share of requests within the limit.
type Fleet struct {
	About         string  `json:"about"`                                             // in what it differs from the chosen one, or what it is
	Type          string  `json:"machine"`                                           // type of machine: the name of its result
	Configuration string  `json:"configuration"`                                     // name of the configuration in that result
	Setup         string  `json:"setup"`                                             // its setup, for people
	Scaling       Scaling `json:"scaling"`                                           // how the number of replicas changes
	Cost          float64 `json:"cost_per_day,omitempty" jsonschema:"minimum=0"`     // cost of a day, in the currency of the price; absent without a price
	Hours         float64 `json:"replica_hours_per_day" jsonschema:"minimum=0"`      // hours of all replicas in a day, those that start included
	Within        float64 `json:"within" jsonschema:"minimum=0,maximum=1"`           // share of the requests within the limit
	WorstDay      float64 `json:"within_worst_day" jsonschema:"minimum=0,maximum=1"` // the same on the worst day
	P50           float64 `json:"latency_p50" jsonschema:"minimum=0"`                // median latency of all requests
	P99           float64 `json:"latency_p99" jsonschema:"minimum=0"`                // 99th percentile of the latency; the largest that is simulated if it is above
	Mean          float64 `json:"replicas_mean" jsonschema:"minimum=0"`              // mean number of replicas
	Peak          int     `json:"replicas_peak" jsonschema:"minimum=1"`              // largest number of replicas
	Changes       float64 `json:"changes_per_day" jsonschema:"minimum=0"`            // changes of the number of replicas in a day
}

// Scaling is how the number of replicas of a fleet changes.
type Scaling struct {
	Scaler Scaler `json:"autoscaler" jsonschema:"enum,enum=cpu,enum=clairvoyant"` // what changes it
	Min    int    `json:"min" jsonschema:"minimum=1"`                             // least number of replicas
	Max    int    `json:"max" jsonschema:"minimum=1"`                             // largest number of replicas
	// requests per second of a replica that the autoscaler aims at; absent where the metric is another
	Target float64 `json:"target,omitempty" jsonschema:"minimum=0"`
	// relative distance from the target within which nothing changes
	Tolerance float64 `json:"tolerance,omitempty" jsonschema:"minimum=0"`
	// time for which fewer replicas must suffice before some are removed, in seconds
	Down float64 `json:"scale_down_stabilization,omitempty" jsonschema:"minimum=0"`
	// time over which the metric is a mean, in seconds
	Window  float64 `json:"metric_window,omitempty" jsonschema:"minimum=0"`
	Startup float64 `json:"startup" jsonschema:"minimum=0"` // time from the wish for a pod to its first request, in seconds
}

// The scalers of fleets that are only for comparison.
const (
	cpuScaler   Scaler = "cpu"         // processor time
	clairvoyant Scaler = "clairvoyant" // knowledge of the future
)

// Candidate is a configuration that was considered.
type Candidate struct {
	Type          string  `json:"machine"`                                         // type of machine
	Configuration string  `json:"configuration"`                                   // its name
	Setup         string  `json:"setup"`                                           // its setup, for people
	Price         float64 `json:"price_per_hour,omitempty" jsonschema:"minimum=0"` // price of a replica per hour; absent if it is unknown
	Capacity      float64 `json:"capacity" jsonschema:"minimum=0"`                 // rate that a replica answers at most
	Safe          float64 `json:"safe_rate" jsonschema:"minimum=0"`                // rate of a replica at which the share keeps the limit; 0: none
	// cost of a day with a clairvoyant number of replicas, or its replica hours without a price: no
	// autoscaler needs less; absent where the limit cannot be kept
	LeastCost float64 `json:"least_cost,omitempty" jsonschema:"minimum=0"`
	Tried     int     `json:"settings_tried" jsonschema:"minimum=0"` // number of autoscaler settings that were simulated
	Checks    []Check `json:"checks"`                                // the simulation beside what was measured
}

// Check compares the simulation of a measured load with the measurement.
type Check struct {
	Load      measure.Load `json:"load"`          // the load
	Measured  float64      `json:"measured_p99"`  // measured 99th percentile of the latency
	Simulated float64      `json:"simulated_p99"` // simulated 99th percentile
}
