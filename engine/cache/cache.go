// Package cache keeps answers of models, so that a request that was answered before need not be
// executed again. It holds at most a given number of bytes, and drops the answers first that were
// used least recently.
//
// It stands between an accepted request and the scheduler: package engine makes the Key of a
// request, asks for its answer, and stores an answer that it had to compute. The package knows
// neither models nor tensors, copies nothing, and never waits.
package cache

import (
	"sync"
	"time"
)

// Overhead is the number of bytes that an entry takes beside its value: the entry itself (112), its
// key in the map (32), and the map's slot (8) at the lowest load of Go's maps, 7/16. It is rounded up.
const Overhead = 256

// Cache is a bounded store of values. Each model has a Share of it.
type Cache[V any] struct {
	max int64

	mu    sync.Mutex
	used  int64
	stats Statistics
	order entry[V] // ring of all entries behind this one, the last used first
}

// Share holds the values of one model in a cache. A nil Share has no values.
type Share[V any] struct {
	cache   *Cache[V]
	entries map[Key]*entry[V] // nil once closed; guarded by Cache.mu
}

type entry[V any] struct {
	share      *Share[V]
	key        Key
	value      V
	size       int64
	next, prev *entry[V]
}

// Statistics are the figures of a cache since it was made.
type Statistics struct {
	Max, Used    int64 // bytes
	Entries      int
	Hits, Misses uint64
	Evictions    uint64 // entries that made room for others
	LookUps      time.Duration
	Insertions   time.Duration
}

// New makes an empty cache for max bytes.
func New[V any](max int64) *Cache[V] {
	c := &Cache[V]{max: max}
	c.order.next, c.order.prev = &c.order, &c.order
	return c
}

// Open makes an empty share. A nil cache has only nil shares.
func (c *Cache[V]) Open() *Share[V] {
	if c == nil {
		return nil
	}
	return &Share[V]{cache: c, entries: map[Key]*entry[V]{}}
}

// Statistics returns the figures of now.
func (c *Cache[V]) Statistics() Statistics {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.Max, s.Used = c.max, c.used
	return s
}

// Max returns the size of the cache in bytes.
func (s *Share[V]) Max() int64 { return s.cache.max }

// Close removes all values of the share. Values that are stored afterwards are not kept. It may be
// called more than once.
func (s *Share[V]) Close() {
	if s == nil {
		return
	}
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	for _, e := range s.entries {
		s.cache.remove(e)
	}
	s.entries = nil
}

// Get returns the value of a key.
func (s *Share[V]) Get(k Key) (value V, found bool) {
	begin := time.Now()
	c := s.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	e := s.entries[k]
	if e == nil {
		c.stats.Misses++
	} else {
		value, found = e.value, true
		c.stats.Hits++
		e.unlink()
		c.link(e)
	}
	c.stats.LookUps += time.Since(begin)
	return value, found
}

// Outcome says what Put did.
type Outcome int

// Outcomes of Put.
const (
	Stored   Outcome = iota
	Present          // there was a value already
	TooLarge         // it is larger than the cache
	NoRoom           // others hold the room that they will take
	Closed
)

// Put stores a value of size bytes. It calls make for the value only once it has room for it, so
// that the bound also holds for what make allocates. No lock is held meanwhile. evicted is the number of
// bytes that made room.
func (s *Share[V]) Put(k Key, size int64, make func() V) (outcome Outcome, evicted int64) {
	begin := time.Now()
	c := s.cache
	size += Overhead
	c.mu.Lock()
	outcome, evicted = s.reserve(k, size)
	c.mu.Unlock()
	if outcome != Stored {
		return outcome, evicted
	}
	value := make()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Insertions += time.Since(begin)
	switch {
	case s.entries == nil:
		outcome = Closed
	case s.entries[k] != nil:
		outcome = Present
	default:
		e := &entry[V]{share: s, key: k, value: value, size: size}
		s.entries[k] = e
		c.link(e)
		c.stats.Entries++
		return Stored, evicted
	}
	c.used -= size
	return outcome, evicted
}

// reserve takes room for a value. The caller holds Cache.mu.
func (s *Share[V]) reserve(k Key, size int64) (outcome Outcome, evicted int64) {
	c := s.cache
	switch {
	case s.entries == nil:
		return Closed, 0
	case s.entries[k] != nil:
		return Present, 0
	case size > c.max:
		return TooLarge, 0
	}
	for c.used+size > c.max {
		oldest := c.order.prev
		if oldest == &c.order {
			return NoRoom, evicted
		}
		evicted += oldest.size
		delete(oldest.share.entries, oldest.key)
		c.remove(oldest)
		c.stats.Evictions++
	}
	c.used += size
	return Stored, evicted
}

// remove takes an entry off the list, and gives its room back. The caller holds Cache.mu.
func (c *Cache[V]) remove(e *entry[V]) {
	e.unlink()
	c.used -= e.size
	c.stats.Entries--
}

// link makes e the entry that was used last. The caller holds Cache.mu.
func (c *Cache[V]) link(e *entry[V]) {
	e.prev, e.next = &c.order, c.order.next
	e.prev.next, e.next.prev = e, e
}

func (e *entry[V]) unlink() { e.prev.next, e.next.prev = e.next, e.prev }
