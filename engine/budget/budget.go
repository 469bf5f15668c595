// Package budget bounds the memory that clients make the engine hold: bodies and messages, what is decoded of them, and
// answers until they are written. All front ends of a process share one Budget, and each connection has an Account of it.
//
// Bytes are charged before they are allocated, and given back once. The package allocates nothing itself, and it knows no
// wire: who holds an account charges what it holds.
package budget

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// DefaultMax stands where the memory that the process may use is unknown. It has room for a few requests of the largest size.
const DefaultMax = 6 << 30

const (
	// patience is how long a client may be seen to move nothing of what waits for it while others are refused.
	patience = 10 * time.Second
	// lookEvery is how often refusals look for such a client.
	lookEvery = time.Second
	// reserve is the part of the maximum, as a divisor, that is left for what cannot be refused.
	reserve = 8
	// rubbish is the part that may be garbage, as a divisor, and leastRubbish the bytes that may be however little the maximum is.
	rubbish      = 16
	leastRubbish = 64 << 20
)

// Budget is a number of bytes and those who hold them.
type Budget struct {
	max     int64
	used    atomic.Int64
	garbage atomic.Int64 // bytes that were discarded since garbage was collected for them

	mu       sync.Mutex
	accounts map[*Account]bool
	looked   time.Time // when a refusal looked for idle clients
}

// New returns a budget of max bytes; 0 is DefaultMax.
func New(max int64) *Budget {
	if max == 0 {
		max = DefaultMax
	}
	return &Budget{max: max, accounts: map[*Account]bool{}}
}

// Max is the number of bytes that may be held.
func (b *Budget) Max() int64 { return b.max }

// Fits reports whether an account may take n bytes when nobody holds any.
func (b *Budget) Fits(n int) bool { return 2*int64(n) <= b.max }

// Used is the number of bytes that are held.
func (b *Budget) Used() int64 { return b.used.Load() }

// Account is what one connection holds. A nil Account is that of a caller who is no client: it bounds nothing.
type Account struct {
	budget *Budget
	end    func() // closes the connection; nil: there is none
	held   atomic.Int64
	owed   atomic.Int64 // of held: what waits until the client reads or goes on sending
	moves  atomic.Int64 // how often the client has done so: hot paths have no clock

	// Guarded by Budget.mu.
	isEnded bool      // end was called
	seen    int64     // the moves when it was looked at
	still   time.Time // since when it has been seen not to move
}

// Open makes an account. end closes its connection and does not block; nil says that there is none to close. The caller
// closes the account.
func (b *Budget) Open(end func()) *Account {
	a := &Account{budget: b, end: end}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.accounts[a] = true
	return a
}

// Close forgets the account. What it still holds is given back by those who hold it.
func (a *Account) Close() {
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	delete(a.budget.accounts, a)
}

// Max is the number of bytes that all accounts may hold together.
func (a *Account) Max() int64 { return a.budget.max }

// Take charges n bytes that are to be allocated, or refuses them. An account may hold as much as it leaves free: however
// many hold what they can, there is as much room for the next one.
func (a *Account) Take(n int) bool {
	if a == nil || n == 0 {
		return true
	}
	if a.add(n) <= a.budget.max {
		return true
	}
	a.add(-n)
	a.budget.refused(a)
	return false
}

// IsFull reports whether nothing more may be taken.
func (a *Account) IsFull() bool { return a != nil && a.add(0) >= a.budget.max }

// Force charges n bytes that have arrived and cannot be refused. Where they take more than the reserve, the account that
// holds most is ended.
func (a *Account) Force(n int) {
	if a.add(n) > a.budget.limit() {
		a.budget.shed(a)
	}
}

// Give gives n bytes back.
func (a *Account) Give(n int) {
	if a != nil && n != 0 {
		a.add(-n)
	}
}

// Discard says that n bytes which were given back are garbage now. Go collects that when the heap has grown by a factor, which
// after a rush of large requests may be never: so it is collected when it has become much. The caller waits for that.
func (a *Account) Discard(n int) {
	if a == nil {
		return
	}
	b := a.budget
	most := max(b.max/rubbish, leastRubbish)
	if now := b.garbage.Add(int64(n)); now >= most && b.garbage.CompareAndSwap(now, 0) {
		runtime.GC()
	}
}

// Owe says that n bytes more of what is held wait for the client; fewer, if n is negative.
func (a *Account) Owe(n int) {
	if a == nil {
		return
	}
	if now := a.owed.Add(int64(n)); now == int64(n) { // nothing waited before
		a.moves.Add(1)
	}
}

// Moved says that the client has read or sent some of what waits for it.
func (a *Account) Moved() { a.moves.Add(1) }

// add charges n bytes. It returns what may be at most the budget's maximum: what is held by all, and the account's part once
// more.
func (a *Account) add(n int) int64 {
	return a.held.Add(int64(n)) + a.budget.used.Add(int64(n))
}

// limit is the maximum with the reserve.
func (b *Budget) limit() int64 { return b.max + b.max/reserve }

// refused looks, now and then, whether the client that most bytes wait for has left them alone while another is refused.
func (b *Budget) refused(by *Account) {
	b.mu.Lock()
	now := time.Now()
	if now.Sub(b.looked) < lookEvery {
		b.mu.Unlock()
		return
	}
	b.looked = now
	idle := b.largest(func(a *Account) int64 { return a.owed.Load() })
	if idle == nil || idle == by || !idle.isStill(now) {
		b.mu.Unlock()
		return
	}
	idle.isEnded = true
	b.mu.Unlock()
	idle.end()
}

// isStill reports whether the client has not moved for long. Budget.mu is held.
func (a *Account) isStill(now time.Time) bool {
	if moves := a.moves.Load(); moves != a.seen {
		a.seen, a.still = moves, now
	}
	return now.Sub(a.still) >= patience
}

// shed ends the account that holds most, unless those that have been ended already make enough room.
func (b *Budget) shed(by *Account) {
	b.mu.Lock()
	coming := int64(0)
	for a := range b.accounts {
		if a.isEnded {
			coming += a.held.Load()
		}
	}
	if by.isEnded || by.add(0)-coming <= b.limit() {
		b.mu.Unlock()
		return
	}
	most := b.largest(func(a *Account) int64 { return a.held.Load() })
	if most != nil {
		most.isEnded = true
	}
	b.mu.Unlock()
	if most != nil {
		most.end()
	}
}

// largest is the account with the most bytes, by of, among those that can be ended; nil where none has any.
func (b *Budget) largest(of func(*Account) int64) *Account {
	var found *Account
	most := int64(0)
	for a := range b.accounts {
		if n := of(a); n > most && a.end != nil && !a.isEnded {
			found, most = a, n
		}
	}
	return found
}
