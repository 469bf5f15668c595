package cache_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"tuner/engine/cache"
)

func key(n int) cache.Key {
	h := cache.NewHash()
	h.Number(int64(n))
	return h.Key()
}

// constant makes the value of a test without counting its calls.
func constant(n int) func() int { return func() int { return n } }

// overhead measures the bytes of an entry whose value has none.
func overhead(t testing.TB) int64 {
	c := cache.New[int](1 << 20)
	c.Open().Put(key(0), 0, constant(0))
	n := c.Statistics().Used
	if n <= 0 {
		t.Fatalf("an entry takes %d bytes beside its value", n)
	}
	return n
}

func TestLeastRecentlyUsedGoesFirst(t *testing.T) {
	t.Parallel()
	each := overhead(t) + 10
	c := cache.New[int](3*each + each - 1) // three entries and not four
	s := c.Open()
	for n := range 3 {
		if got, evicted := s.Put(key(n), 10, constant(n)); got != cache.Stored || evicted != 0 {
			t.Fatalf("Put %d: %v, evicted %d", n, got, evicted)
		}
	}
	s.Get(key(0)) // now 1 is the oldest
	if got, evicted := s.Put(key(3), 10, constant(3)); got != cache.Stored || evicted != each {
		t.Fatalf("Put 3: %v, evicted %d, want %d", got, evicted, each)
	}
	var there []int
	for n := range 4 {
		if v, ok := s.Get(key(n)); ok && v == n {
			there = append(there, n)
		}
	}
	if want := []int{0, 2, 3}; !slices.Equal(there, want) {
		t.Errorf("entries %v, want %v", there, want)
	}
	if st := c.Statistics(); st.Hits != 4 || st.Misses != 1 || st.Evictions != 1 || st.Entries != 3 || st.Used != 3*each {
		t.Errorf("statistics %+v", st)
	}
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	c := cache.New[int](1000)
	s, other := c.Open(), c.Open()
	never := func() int { t.Error("a value without room is made"); return 0 }
	if got, _ := s.Put(key(1), 1001, never); got != cache.TooLarge {
		t.Errorf("a value larger than the cache: %v", got)
	}
	s.Put(key(1), 1, constant(1))
	if got, _ := s.Put(key(1), 1, never); got != cache.Present {
		t.Errorf("a second value: %v", got)
	}
	if _, found := other.Get(key(1)); found {
		t.Error("a share has the value of another one")
	}
	// a value that finds all room reserved is not stored, and evicts nothing that is not there
	inner := cache.Stored
	s.Put(key(2), 700, func() int { inner, _ = other.Put(key(3), 700, never); return 2 })
	if inner != cache.NoRoom {
		t.Errorf("a value beside one that is being made: %v", inner)
	}
	// closed meanwhile, and stored by another one meanwhile
	if got, _ := other.Put(key(4), 1, func() int { other.Close(); return 4 }); got != cache.Closed {
		t.Errorf("a value whose share is closed meanwhile: %v", got)
	}
	if got, _ := other.Put(key(4), 1, never); got != cache.Closed {
		t.Errorf("a value of a closed share: %v", got)
	}
	third := cache.New[int](1 << 20).Open()
	if got, _ := third.Put(key(5), 1, func() int { third.Put(key(5), 1, constant(6)); return 5 }); got != cache.Present {
		t.Errorf("a value that another one stores meanwhile: %v", got)
	}
	if v, _ := third.Get(key(5)); v != 6 {
		t.Errorf("the value is %d, want that of the first", v)
	}
}

// model is a cache as its description says, with a list in place of the ring.
type model struct {
	max, used int64
	entries   []modelEntry // the last used at the end
}

type modelEntry struct {
	share, key int
	size       int64
}

func (m *model) find(share, key int) int {
	return slices.IndexFunc(m.entries, func(e modelEntry) bool { return e.share == share && e.key == key })
}

func (m *model) put(e modelEntry) {
	if m.find(e.share, e.key) >= 0 || e.size > m.max {
		return
	}
	for m.used+e.size > m.max {
		m.used -= m.entries[0].size
		m.entries = m.entries[1:]
	}
	m.used += e.size
	m.entries = append(m.entries, e)
}

// After any calls the cache has the entries of the model, and exactly its bytes.
func TestPropertyBound(t *testing.T) {
	t.Parallel()
	extra := overhead(t)
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		m := model{max: 1 + random.Int64N(20*extra)}
		c := cache.New[int](m.max)
		shares := []*cache.Share[int]{c.Open(), c.Open(), c.Open()}
		for range 500 {
			i, k := random.IntN(len(shares)), random.IntN(12)
			switch at := m.find(i, k); random.IntN(20) {
			case 0:
				shares[i].Close()
				shares[i] = c.Open()
				m.entries = slices.DeleteFunc(m.entries, func(e modelEntry) bool {
					if e.share == i {
						m.used -= e.size
					}
					return e.share == i
				})
			case 1, 2, 3, 4, 5, 6, 7, 8:
				value, found := shares[i].Get(key(k))
				if found != (at >= 0) || found && value != 100*i+k {
					t.Fatalf("seed %d: Get %d of share %d: %d, %v; want it %v", seed, k, i, value, found, at >= 0)
				}
				if found {
					e := m.entries[at]
					m.entries = append(slices.Delete(m.entries, at, at+1), e)
				}
			default:
				size := random.Int64N(4 * extra)
				shares[i].Put(key(k), size, constant(100*i+k))
				m.put(modelEntry{i, k, size + extra})
			}
			if st := c.Statistics(); st.Used != m.used || st.Used > m.max || st.Entries != len(m.entries) {
				t.Fatalf("seed %d: %d bytes in %d entries, want %d in %d, at most %d", seed, st.Used, st.Entries, m.used, len(m.entries), m.max)
			}
		}
	}
}

// Many goroutines never see more bytes than the bound, nor another value than that of the key. At
// the end nothing is left.
func TestConcurrency(t *testing.T) {
	t.Parallel()
	const max = 10_000
	c := cache.New[int](max)
	var live atomic.Int64 // bytes of the values that are being made
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(g), 2))
			s := c.Open()
			for range 3000 {
				k := random.IntN(100)
				if v, found := s.Get(key(k)); found && v != k {
					t.Errorf("key %d has the value %d", k, v)
				}
				size := random.Int64N(2000)
				s.Put(key(k), size, func() int {
					if n := live.Add(size); n > max {
						t.Errorf("values of %d bytes are made at a time", n)
					}
					live.Add(-size)
					return k
				})
				if st := c.Statistics(); st.Used > max || st.Used < 0 {
					t.Errorf("%d bytes are used", st.Used)
				}
				if random.IntN(100) == 0 {
					s.Close()
					s = c.Open()
				}
			}
			s.Close()
		})
	}
	all.Wait()
	if st := c.Statistics(); st.Used != 0 || st.Entries != 0 {
		t.Errorf("%d bytes in %d entries are left", st.Used, st.Entries)
	}
}

// Different lists of parts have different keys, also where their bytes joined are the same.
func TestKeysDiffer(t *testing.T) {
	t.Parallel()
	seen := map[cache.Key]string{}
	add := func(name string, parts func(h *cache.Hash)) {
		h := cache.NewHash()
		parts(h)
		k := h.Key()
		if other, twice := seen[k]; twice {
			t.Errorf("%s and %s have the same key", name, other)
		}
		seen[k] = name
	}
	add("nothing", func(*cache.Hash) {})
	add("ab, c", func(h *cache.Hash) { h.Bytes([]byte("ab")); h.Bytes([]byte("c")) })
	add("a, bc", func(h *cache.Hash) { h.Bytes([]byte("a")); h.Bytes([]byte("bc")) })
	add("abc", func(h *cache.Hash) { h.Bytes([]byte("abc")) })
	add("[1 2] [3]", func(h *cache.Hash) { h.Numbers([]int64{1, 2}); h.Numbers([]int64{3}) })
	add("[1] [2 3]", func(h *cache.Hash) { h.Numbers([]int64{1}); h.Numbers([]int64{2, 3}) })
	add("no shape, 8 bytes", func(h *cache.Hash) { h.Numbers(nil); h.Bytes(binary.LittleEndian.AppendUint64(nil, 1)) })
	add("empty", func(h *cache.Hash) { h.Bytes(nil) })
}

func BenchmarkGet(b *testing.B) {
	for _, entries := range []int{10, 10_000} {
		b.Run(fmt.Sprintf("entries=%d", entries), func(b *testing.B) {
			c := cache.New[int](1 << 30)
			s := c.Open()
			keys := make([]cache.Key, entries)
			for i := range keys {
				keys[i] = key(i)
				s.Put(keys[i], 100, constant(i))
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				s.Get(keys[i%entries])
			}
		})
	}
}

func BenchmarkKey(b *testing.B) {
	for _, size := range []int{64, 64 << 10} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			data := make([]byte, size)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				h := cache.NewHash()
				h.Bytes(data)
				h.Key()
			}
		})
	}
}
