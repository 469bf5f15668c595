// Package budget bounds the memory that clients can make the engine hold: bodies and messages,
// their decoded form, and answers until they are written. All front ends of a process share one
// Budget, and each connection has an Account of it.
//
// Bytes are charged before they are allocated, and given back once. The package allocates nothing
// itself and knows no wire. The holder of an account charges the memory that it holds.
package budget

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// DefaultMax is used if the memory that the process may use is unknown. It has room for a few
// requests of the largest size.
const DefaultMax = 6 << 30

const (
	// patience is the time for which a client may leave its waiting bytes untouched while others
	// are refused.
	patience = 10 * time.Second
	// lookEvery is the least interval at which refusals search for such a client.
	lookEvery = time.Second
	// 1/reserve of the maximum is left for bytes that cannot be refused.
	reserve = 8
	// 1/rubbish of the maximum may be garbage, but never less than leastRubbish bytes.
	rubbish      = 16
	leastRubbish = 64 << 20
)

// Budget is a limit in bytes, and the accounts that hold some of them.
type Budget struct {
	max     int64
	used    atomic.Int64
	garbage atomic.Int64 // bytes discarded since the last garbage collection for them

	mu       sync.Mutex
	accounts map[*Account]bool
	looked   time.Time // when a refusal last searched for idle clients
}

// New returns a budget of max bytes. 0 means DefaultMax.
func New(max int64) *Budget {
	if max == 0 {
		max = DefaultMax
	}
	return &Budget{max: max, accounts: map[*Account]bool{}}
}

// Max returns the number of bytes that may be held.
func (b *Budget) Max() int64 { return b.max }

// Fits reports whether an account may take n bytes if no account holds any.
func (b *Budget) Fits(n int) bool { return 2*int64(n) <= b.max }

// Used returns the number of bytes that are held.
func (b *Budget) Used() int64 { return b.used.Load() }

// Account counts the bytes of one connection. A nil Account belongs to a caller who is not a
// client, and has no bound.
type Account struct {
	budget *Budget
	end    func() // closes the connection; nil without one
	held   atomic.Int64
	owed   atomic.Int64 // part of held that waits until the client reads or sends more
	// number of times that the client has done so, since hot paths have no clock
	moves atomic.Int64

	// Guarded by Budget.mu.
	isEnded bool      // end was called
	seen    int64     // moves at the last check
	still   time.Time // since when no move has been seen
}

// Open makes an account. end closes its connection and must not block; nil without a connection.
// The caller closes the account.
func (b *Budget) Open(end func()) *Account {
	a := &Account{budget: b, end: end}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.accounts[a] = true
	return a
}

// Close forgets the account. The holders of its bytes still give them back.
func (a *Account) Close() {
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	delete(a.budget.accounts, a)
}

// Max returns the number of bytes that all accounts together may hold.
func (a *Account) Max() int64 { return a.budget.max }

// Take charges n bytes before their allocation, or refuses them. An account may hold at most as
// much as stays free. So there is always room for one more account.
func (a *Account) Take(n int) bool {
	if a == nil || n == 0 {
		return true
	}
	if a.charge(n) <= a.budget.max {
		return true
	}
	a.charge(-n)
	a.budget.refused(a)
	return false
}

// IsFull reports whether no further bytes may be taken.
func (a *Account) IsFull() bool { return a != nil && a.charge(0) >= a.budget.max }

// Force charges n bytes that have arrived and cannot be refused. If they exceed the reserve, it
// ends the account that holds the most.
func (a *Account) Force(n int) {
	if a.charge(n) > a.budget.limit() {
		a.budget.shed(a)
	}
}

// Give gives n bytes back.
func (a *Account) Give(n int) {
	if a != nil && n != 0 {
		a.charge(-n)
	}
}

// Discard reports that n bytes that were given back are garbage now. Go collects garbage when the
// heap has grown by a factor, which may never happen after a rush of large requests. So Discard
// collects it once there is much of it. The caller waits for that.
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

// Owe reports that n more of the held bytes wait for the client. A negative n means fewer.
func (a *Account) Owe(n int) {
	if a == nil {
		return
	}
	if now := a.owed.Add(int64(n)); now == int64(n) { // no bytes waited before
		a.moves.Add(1)
	}
}

// Moved reports that the client has read or sent some of the bytes that wait for it.
func (a *Account) Moved() { a.moves.Add(1) }

// charge charges n bytes. It returns the bytes held by all accounts plus the bytes of this account
// once more. Take limits that sum to the maximum.
func (a *Account) charge(n int) int64 {
	return a.held.Add(int64(n)) + a.budget.used.Add(int64(n))
}

// limit returns the maximum plus the reserve.
func (b *Budget) limit() int64 { return b.max + b.max/reserve }

// refused ends the client with the most waiting bytes if it has left them untouched for long while
// another client is refused. It checks this at most once per lookEvery.
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

// isStill reports whether the client has not moved for long. The caller holds Budget.mu.
func (a *Account) isStill(now time.Time) bool {
	if moves := a.moves.Load(); moves != a.seen {
		a.seen, a.still = moves, now
	}
	return now.Sub(a.still) >= patience
}

// shed ends the account that holds the most, unless the accounts that were ended already make
// enough room.
func (b *Budget) shed(by *Account) {
	b.mu.Lock()
	coming := int64(0)
	for a := range b.accounts {
		if a.isEnded {
			coming += a.held.Load()
		}
	}
	if by.isEnded || by.charge(0)-coming <= b.limit() {
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

// largest returns the account with the most bytes, as counted by of, among those that can be ended.
// It returns nil if none has any.
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
