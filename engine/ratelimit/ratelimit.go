// Package ratelimit shares named resources among the instances of all models, for
// --rate-limit=execution_count: an instance executes only while it holds all that its configuration
// asks for.
//
// Package engine adds instances, and has them acquire and release. The package executes nothing, and
// knows neither models nor requests. Its rules are those of Triton (rate_limiter.cc).
package ratelimit

import (
	"container/heap"
	"sync"

	"tuner/engine/fault"
)

// AllDevices is the Device of a capacity that each device has for itself.
const AllDevices = -1

// Capacity is an explicit amount of a resource.
type Capacity struct {
	Name   string
	Count  int
	Device int // or AllDevices; without meaning if the instances use the resource globally
}

// Need is a part of what an instance holds while it executes.
type Need struct {
	Name     string
	IsGlobal bool // shared by all devices; otherwise it is the instance's own device's
	Count    int
}

// key identifies a resource.
type key struct {
	name   string
	device int // without meaning if it is global
	global bool
}

// Limiter is the resources of a server. All methods are safe for concurrent use.
type Limiter struct {
	capacities []Capacity // empty: the largest need is the capacity

	mu     sync.Mutex
	claims map[*Claim]bool
	limits map[key]int // amounts of all resources that instances need
	used   map[key]int
	queue  claims // instances that wait
	turns  uint64 // of the queue
}

// New makes a limiter. With capacities, a resource that none of them names has none.
func New(capacities []Capacity) *Limiter {
	return &Limiter{capacities: capacities, claims: map[*Claim]bool{}, used: map[key]int{}}
}

// Claim is an instance's. A nil Claim needs nothing, and its methods do nothing.
type Claim struct {
	limiter    *Limiter
	needs      map[key]int
	priority   uint64
	executions uint64
	turn       uint64
	granted    chan struct{} // holds an element when the needs are met
}

// Add makes the claim of an instance on a device. Instances with a higher number as priority execute
// less often; 0 means 1. The error is for the client who loads the model. Remove ends the claim.
func (l *Limiter) Add(needs []Need, priority uint32, device int) (*Claim, error) {
	if l == nil {
		return nil, nil
	}
	c := &Claim{limiter: l, needs: map[key]int{}, priority: uint64(max(priority, 1)), granted: make(chan struct{}, 1)}
	for _, n := range needs {
		k := key{name: n.Name, device: device, global: n.IsGlobal}
		if n.IsGlobal {
			k.device = 0
		}
		c.needs[k] = n.Count
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.claims[c] = true
	l.measure()
	if err := l.check(); err != nil {
		delete(l.claims, c)
		l.measure()
		return nil, err
	}
	return c, nil
}

// Remove ends the claim. It must not be held, or waited for. It may be called more than once.
func (c *Claim) Remove() {
	if c == nil {
		return
	}
	c.limiter.mu.Lock()
	defer c.limiter.mu.Unlock()
	delete(c.limiter.claims, c)
	c.limiter.measure()
}

// Acquire blocks until all needs are met at the same time. Release must follow.
func (c *Claim) Acquire() {
	if c == nil {
		return
	}
	l := c.limiter
	l.mu.Lock()
	l.turns++
	c.turn = l.turns
	heap.Push(&l.queue, c)
	l.grant()
	l.mu.Unlock()
	<-c.granted
}

// Release gives back what the claim holds.
func (c *Claim) Release() {
	if c == nil {
		return
	}
	l := c.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	c.executions++
	for k, n := range c.needs {
		l.used[k] -= n
	}
	l.grant()
}

// grant serves the queue from its front. The first one waits for all that it needs, and those behind
// it wait too, so that many small claims do not keep a large one waiting for ever.
func (l *Limiter) grant() {
	for len(l.queue) > 0 {
		c := l.queue[0]
		for k, n := range c.needs {
			if l.used[k]+n > l.limits[k] {
				return
			}
		}
		for k, n := range c.needs {
			l.used[k] += n
		}
		heap.Pop(&l.queue)
		c.granted <- struct{}{}
	}
}

// measure finds the amounts of all resources.
func (l *Limiter) measure() {
	l.limits = map[key]int{}
	for c := range l.claims {
		for k := range c.needs {
			if _, known := l.limits[k]; !known {
				l.limits[k] = l.capacity(k)
			}
		}
	}
}

// capacity returns the amount of a resource.
func (l *Limiter) capacity(k key) int {
	if len(l.capacities) == 0 {
		return l.largest(k)
	}
	most := 0
	for _, c := range l.capacities {
		if c.Name == k.name && (k.global || c.Device == AllDevices || c.Device == k.device) {
			most = max(most, c.Count)
		}
	}
	return most
}

// largest returns the most of a resource that one instance needs.
func (l *Limiter) largest(k key) int {
	most := 0
	for c := range l.claims {
		most = max(most, c.needs[k])
	}
	return most
}

// check refuses needs that can never be met, and resources that are both global and a device's.
func (l *Limiter) check() error {
	globals := map[string]bool{}
	for c := range l.claims {
		for k, n := range c.needs {
			globals[k.name] = globals[k.name] || k.global
			if limit := l.limits[k]; limit < n {
				return fault.Errorf(fault.InvalidArgument,
					"Resource count for \"%s\" is limited to %d which will prevent scheduling of one or more model instances, the minimum required count is %d", k.name, limit, n)
			}
		}
	}
	for c := range l.claims {
		for k := range c.needs {
			if !k.global && globals[k.name] {
				return fault.Errorf(fault.InvalidArgument, "Resource \"%s\" is present as both global and device-specific resource in the model configuration.", k.name)
			}
		}
	}
	return nil
}

// claims is a heap of those that wait. The first one has executed least, weighed by its priority;
// among equals, it has waited longest.
type claims []*Claim

func (q claims) Len() int      { return len(q) }
func (q claims) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Less implements heap.Interface. The weight of a claim does not change while it waits.
func (q claims) Less(i, j int) bool {
	a, b := q[i].executions*q[i].priority, q[j].executions*q[j].priority
	return a < b || a == b && q[i].turn < q[j].turn
}

// Push implements heap.Interface.
func (q *claims) Push(c any) { *q = append(*q, c.(*Claim)) }

// Pop implements heap.Interface.
func (q *claims) Pop() any {
	last := len(*q) - 1
	c := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return c
}
