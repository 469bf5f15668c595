package sharedmemory_test

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/engine/budget"
	"tuner/engine/enginetest"
	"tuner/engine/fault"
	"tuner/engine/request"
	"tuner/engine/sharedmemory"
)

const page = 4096

// numbered returns n bytes of which any 251 in a row differ.
func numbered(n int) []byte {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(i % 251)
	}
	return data
}

func newRegions(t testing.TB) *sharedmemory.Regions {
	t.Helper()
	r := sharedmemory.New()
	t.Cleanup(r.Close)
	return r
}

func register(t testing.TB, r *sharedmemory.Regions, name, key string, offset, size uint64) {
	t.Helper()
	if err := r.Register(name, key, offset, size); err != nil {
		t.Fatal(err)
	}
}

// failsWith fails the test if err has not the class and the text. "" means no error.
func failsWith(t testing.TB, what string, err error, code fault.Code, text string) {
	t.Helper()
	if text == "" && err == nil {
		return
	}
	if err == nil || text == "" || fault.CodeOf(err) != code || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: got %v, want %v %q", what, err, code, text)
	}
}

func TestRegister(t *testing.T) {
	t.Parallel()
	key, file := enginetest.SharedFile(t, numbered(2*page))
	taken := "triton_python_backend_shm_region_1"
	r := newRegions(t)
	for _, tc := range []struct {
		what, name, key string
		offset, size    uint64
		code            fault.Code
		text            string
	}{
		{"all", "all", key, 0, 2 * page, 0, ""},
		{"second page", "second", "//" + key, page, page, 0, ""},
		{"one byte", "byte", strings.TrimPrefix(key, "/"), 0, 1, 0, ""},
		{"a name again", "all", key, 0, page, fault.AlreadyExists, "shared memory region 'all' already in manager"},
		{"a name again, without a file", "all", "/none", 0, page, fault.AlreadyExists, "already in manager"},
		{"one byte too long", "x", key, 0, 2*page + 1, fault.InvalidArgument, "failed to register shared memory region 'x': invalid args"},
		{"one byte too far", "x", key, page, page + 1, fault.InvalidArgument, "invalid args"},
		{"behind the end", "x", key, 2*page + 1, 0, fault.InvalidArgument, "invalid args"},
		{"2^63 bytes", "x", key, 0, 1 << 63, fault.InvalidArgument, "invalid args"},
		{"all sizes", "x", key, 0, math.MaxUint64, fault.InvalidArgument, "invalid args"},
		{"a sum of 2^64", "x", key, 1 << 63, 1 << 63, fault.InvalidArgument, "invalid args"},
		{"a sum beyond 2^64", "x", key, page, math.MaxUint64 - page + 2, fault.InvalidArgument, "invalid args"},
		{"nothing", "x", key, 0, 0, fault.InvalidArgument, "failed to register shared memory region 'x': unable to process address spaceInvalid argument"},
		{"within a page", "x", key, 16, 16, fault.InvalidArgument, "unable to process address spaceInvalid argument"},
		{"reserved", "x", "/" + taken, 0, 1, fault.InvalidArgument, "cannot register shared memory region 'x' with key '/" + taken + "' as the key contains the reserved prefix 'triton_python_backend_shm_region_'"},
		{"reserved behind slashes", "x", "///" + taken, 0, 1, fault.InvalidArgument, "reserved prefix"},
		{"a long name", strings.Repeat("n", sharedmemory.MaxName+1), key, 0, 1, fault.InvalidArgument, "at most 1024 bytes"},
		{"a name that is no text", "\xff", key, 0, 1, fault.InvalidArgument, "must be UTF-8"},
		{"a key that is no text", "x", "\xff", 0, 1, fault.InvalidArgument, "must be UTF-8"},
	} {
		failsWith(t, tc.what, r.Register(tc.name, tc.key, tc.offset, tc.size), tc.code, tc.text)
	}
	all, err := r.Status("")
	want := []sharedmemory.Region{
		{Name: "all", Key: key, Size: 2 * page}, {Name: "byte", Key: filepath.Base(file.Name()), Size: 1}, {Name: "second", Key: "//" + key, Offset: page, Size: page},
	}
	if diff := cmp.Diff(want, all); diff != "" || err != nil {
		t.Errorf("%v, (-want +got):\n%s", err, diff)
	}
	if one, err := r.Status("second"); err != nil || len(one) != 1 || one[0].Offset != page {
		t.Errorf("status of one region: %v, %v", one, err)
	}
	_, err = r.Status("none")
	failsWith(t, "status", err, fault.NotFound, "Unable to find system shared memory region: 'none'")
}

// A key is the name of a regular file in /dev/shm itself. No other file is opened, and no pipe waited
// for.
func TestKeys(t *testing.T) {
	t.Parallel()
	key, file := enginetest.SharedFile(t, numbered(page))
	place := func(suffix string) string {
		path := file.Name() + suffix
		t.Cleanup(func() { _ = os.Remove(path) })
		return path
	}
	outside := filepath.Join(t.TempDir(), "outside")
	for _, err := range []error{
		os.WriteFile(outside, numbered(page), 0o600), os.Symlink(outside, place("-out")), os.Symlink(file.Name(), place("-link")),
		syscall.Mkfifo(place("-pipe"), 0o600), os.Mkdir(place("-folder"), 0o700),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	r := newRegions(t)
	for what, refused := range map[string]string{
		"empty": "", "slashes": "///", "here": ".", "above": "..", "here behind a slash": "/.", "above behind slashes": "//..",
		"the file of another folder": "/../../" + outside, "an absolute path": outside, "a path": "a" + key, "a slash behind": key + "/", "NUL": key + "\x00", "NUL alone": "\x00",
		"a long name": strings.Repeat("k", 256), "a very long name": strings.Repeat("k", 1<<20), "no file": key + "-none",
		"a link to outside": key + "-out", "a link": key + "-link", "a folder": key + "-folder",
	} {
		failsWith(t, what, r.Register("x", refused, 0, page), fault.Internal, "Unable to open shared memory region: '"+refused+"'")
	}
	failsWith(t, "a pipe", r.Register("x", key+"-pipe", 0, page), fault.InvalidArgument, "invalid args")
	failsWith(t, "a pipe of no bytes", r.Register("x", key+"-pipe", 0, 0), fault.InvalidArgument, "invalid args")
	if r.Mapped() != 0 {
		t.Errorf("%d bytes are mapped", r.Mapped())
	}
}

// Places are checked against the region. The texts are those of Triton 24.10, and of newer ones where it
// is wrong.
func TestPlaces(t *testing.T) {
	t.Parallel()
	key, _ := enginetest.SharedFile(t, numbered(2*page))
	r := newRegions(t)
	register(t, r, "r", key, page, 64)
	const low, high, sum = "Invalid offset for shared memory region: 'r'", "Invalid offset + byte size for shared memory region: 'r'", "Integer overflow detected: byte_size ("
	for _, tc := range []struct {
		offset, size uint64
		text         string
	}{
		{0, 64, ""}, {0, 1, ""}, {63, 1, ""}, {4, 60, ""}, {4, 0, ""}, {63, 0, ""},
		{0, 0, high}, {0, 65, high}, {1, 64, high}, {63, 2, high}, {0, 1 << 63, high}, {0, math.MaxUint64, high}, {1, math.MaxUint64 - 1, high},
		{64, 0, low}, {64, 1, low}, {1 << 63, 64, low}, {math.MaxUint64, 1, low}, {math.MaxUint64 - 31, 64, low},
		{32, math.MaxUint64 - 31, sum}, {1, math.MaxUint64, sum},
	} {
		var l sharedmemory.Loan
		data, err := l.Input(r, nil, []byte("r"), tc.offset, tc.size)
		failsWith(t, fmt.Sprintf("%d bytes from %d", tc.size, tc.offset), err, fault.InvalidArgument, tc.text)
		// the region begins with the second page
		if err == nil && !bytes.Equal(data, numbered(2 * page)[page+tc.offset:page+tc.offset+tc.size]) {
			t.Errorf("%d bytes from %d are %v", tc.size, tc.offset, data)
		}
		failsWith(t, "as an output", l.Output(r, "o", []byte("r"), tc.offset, tc.size), fault.InvalidArgument, tc.text)
		l.Return()
	}
	var l sharedmemory.Loan
	_, err := l.Input(r, nil, []byte("none"), 0, 1)
	failsWith(t, "unknown", err, fault.NotFound, "Unable to find shared memory region: 'none'")
}

// FuzzPlace compares the checks of places with exact arithmetic.
func FuzzPlace(f *testing.F) {
	key, _ := enginetest.SharedFile(f, numbered(page))
	r := newRegions(f)
	const size = 1000
	register(f, r, "r", key, 0, size)
	for _, seed := range [][2]uint64{{0, 0}, {0, size}, {size, 0}, {1, math.MaxUint64}, {1 << 63, 1 << 63}, {math.MaxUint64, math.MaxUint64}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, offset, n uint64) {
		end := new(big.Int).Add(new(big.Int).SetUint64(offset), new(big.Int).SetUint64(n))
		isInside := offset < size && end.Sign() > 0 && end.Cmp(big.NewInt(size)) <= 0
		var l sharedmemory.Loan
		defer l.Return()
		data, err := l.Input(r, nil, []byte("r"), offset, n)
		if (err == nil) != isInside {
			t.Errorf("%d bytes from %d: %v, inside: %t", n, offset, err, isInside)
		}
		if err == nil && !bytes.Equal(data, numbered(page)[offset:offset+n]) {
			t.Errorf("%d bytes from %d are others", n, offset)
		}
	})
}

// FuzzKey registers files by any key. Only the file in the folder itself is opened.
func FuzzKey(f *testing.F) {
	key, file := enginetest.SharedFile(f, numbered(page))
	name := filepath.Base(file.Name())
	for _, seed := range []string{key, name, "/" + key, key + "/", "/../shm" + key, "./" + name, "\x00", strings.Repeat("/", 300) + name} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, any string) {
		if there, err := os.Lstat("/dev/shm/" + strings.TrimLeft(any, "/")); err == nil && there.Mode().IsRegular() && there.Name() != name {
			t.Skip("a file of someone else")
		}
		r := sharedmemory.New()
		defer r.Close()
		if err := r.Register("r", any, 0, page); (err == nil) != (strings.TrimLeft(any, "/") == name) {
			t.Errorf("key %q: %v", any, err)
		}
	})
}

// A copy of an input does not change with the file. Its memory is charged until it is returned.
func TestInputs(t *testing.T) {
	t.Parallel()
	key, file := enginetest.SharedFile(t, numbered(page))
	r := newRegions(t)
	register(t, r, "r", key, 0, page)
	b := budget.New(4 * page)
	account := b.Open(nil)
	defer account.Close()
	var l sharedmemory.Loan
	data, err := l.Input(r, account, []byte("r"), 0, page)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt(make([]byte, page), 0); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(data, numbered(page)) {
		t.Error("the copy changes with the file")
	}
	// an account may hold as much as stays free: 2 pages of 4
	if _, err := l.Input(r, account, []byte("r"), 0, page); err != nil || b.Used() != 2*page {
		t.Errorf("the second input: %v, %d bytes charged", err, b.Used())
	}
	_, err = l.Input(r, account, []byte("r"), 0, 1)
	failsWith(t, "the third input", err, fault.Exhausted, "bytes of memory")
	l.Return()
	l.Return()
	if b.Used() != 0 {
		t.Errorf("%d bytes are charged at the end", b.Used())
	}
}

// outputs are those of a request with one place in region "r", and its room.
func outputs(data []byte) (*request.Request, []request.Tensor) {
	return &request.Request{Rooms: []request.Room{{Output: "o", Bytes: uint64(len(data))}}}, []request.Tensor{{Name: "other", Data: numbered(8)}, {Name: "o", Data: data}}
}

func TestOutputs(t *testing.T) {
	t.Parallel()
	key, file := enginetest.SharedFile(t, make([]byte, 2*page))
	r := newRegions(t)
	register(t, r, "r", key, page, page)
	var l sharedmemory.Loan
	if l.HasOutputs() {
		t.Error("a loan has outputs at its beginning")
	}
	if err := l.Output(r, "o", []byte("r"), 10, 20); err != nil {
		t.Fatal(err)
	}
	asked, given := outputs(numbered(20))
	if err := l.Deliver(asked, given); err != nil {
		t.Fatal(err)
	}
	if !l.HasOutputs() || !l.Takes("o") || l.Takes("other") {
		t.Error("the loan does not know its outputs")
	}
	want := make([]byte, 2*page)
	copy(want[page+10:], numbered(20))
	got := make([]byte, 2*page)
	if _, err := file.ReadAt(got, 0); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v, or the file has other bytes than the output in its place", err)
	}
	given[1].Data = numbered(21)
	failsWith(t, "an output that is too large", l.Deliver(asked, given), fault.Internal,
		"shared memory size specified with the request for output 'o' (20 bytes) should be at least 21 bytes to hold the results")
	l.Return()
	if l.HasOutputs() {
		t.Error("a loan that was returned has outputs")
	}
}

// A region whose file became shorter is an error, and an end of the process without the copies' care.
func TestShrunkRegion(t *testing.T) {
	t.Parallel()
	key, file := enginetest.SharedFile(t, numbered(4*page))
	r := newRegions(t)
	register(t, r, "r", key, 0, 4*page)
	truncate := func(size int64) {
		t.Helper()
		if err := file.Truncate(size); err != nil {
			t.Fatal(err)
		}
	}
	use := func() (in, out error) {
		var l sharedmemory.Loan
		defer l.Return()
		_, in = l.Input(r, nil, []byte("r"), page, 2*page)
		if err := l.Output(r, "o", []byte("r"), page, 2*page); err != nil {
			t.Fatal(err)
		}
		return in, l.Deliver(outputs(numbered(2 * page)))
	}
	const short = "its file is shorter than when it was registered"
	for _, size := range []int64{0, page, 2 * page} { // no byte of it, none, and the first half
		truncate(size)
		in, out := use()
		failsWith(t, fmt.Sprintf("input of a file of %d bytes", size), in, fault.InvalidArgument, "cannot read shared memory region 'r': "+short)
		failsWith(t, fmt.Sprintf("output to a file of %d bytes", size), out, fault.InvalidArgument, "cannot write to shared memory region 'r': "+short)
	}
	truncate(4 * page)
	if in, out := use(); in != nil || out != nil {
		t.Errorf("the file has its size again: %v, %v", in, out)
	}
	if err := r.Unregister("r"); err != nil {
		t.Error(err)
	}
}

// Files are shortened and extended while many use them.
func TestShrunkRegionUnderLoad(t *testing.T) {
	t.Parallel()
	const size, users, rounds = 64 * page, 4, 300
	key, file := enginetest.SharedFile(t, numbered(size))
	r := newRegions(t)
	register(t, r, "r", key, 0, size)
	var using, changing sync.WaitGroup
	stop := make(chan struct{})
	changing.Go(func() {
		for n := int64(0); ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			if err := file.Truncate(n % 3 * size / 2); err != nil {
				t.Error(err)
			}
		}
	})
	for range users {
		using.Go(func() {
			for range rounds {
				var l sharedmemory.Loan
				_, in := l.Input(r, nil, []byte("r"), 0, size)
				out := l.Output(r, "o", []byte("r"), 0, size)
				if out == nil {
					out = l.Deliver(outputs(numbered(size)))
				}
				for _, err := range []error{in, out} {
					if err != nil && !strings.Contains(err.Error(), "shorter") {
						t.Error(err)
					}
				}
				l.Return()
			}
		})
	}
	using.Wait()
	close(stop)
	changing.Wait()
}

// A region in use stays, under its name and with its memory.
func TestUnregister(t *testing.T) {
	t.Parallel()
	key, _ := enginetest.SharedFile(t, numbered(page))
	r := newRegions(t)
	for _, name := range []string{"c", "b", "a"} {
		register(t, r, name, key, 0, page)
	}
	var in, out sharedmemory.Loan
	if _, err := in.Input(r, nil, []byte("b"), 0, page); err != nil {
		t.Fatal(err)
	}
	if err := out.Output(r, "o", []byte("a"), 0, page); err != nil {
		t.Fatal(err)
	}
	failsWith(t, "in use", r.Unregister("b"), fault.Internal, "Cannot unregister shared memory region 'b', it is currently in use.")
	failsWith(t, "all", r.UnregisterAll(), fault.Internal, "Failed to unregister the following system shared memory regions: a ,b ,")
	failsWith(t, "again while in use", r.Register("b", key, 0, page), fault.AlreadyExists, "already in manager")
	if all, err := r.Status(""); err != nil || len(all) != 2 || r.Mapped() != 2*page {
		t.Errorf("regions %v, %v, %d bytes", all, err, r.Mapped())
	}
	if err := out.Deliver(outputs(numbered(page))); err != nil {
		t.Error(err)
	}
	in.Return()
	out.Return()
	for _, err := range []error{r.Unregister("b"), r.Unregister("none"), r.UnregisterAll(), r.UnregisterAll()} {
		if err != nil {
			t.Error(err)
		}
	}
	if all, err := r.Status(""); err != nil || len(all) != 0 || r.Mapped() != 0 {
		t.Errorf("regions %v, %v, %d bytes at the end", all, err, r.Mapped())
	}
}

// Regions come and go while requests use them.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	key, _ := enginetest.SharedFile(t, numbered(page))
	r := newRegions(t)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for n := range 500 {
				name := fmt.Sprint("r", n%3)
				_ = r.Register(name, key, 0, page) // it may be there
				var l sharedmemory.Loan
				if data, err := l.Input(r, nil, []byte(name), 0, page); err == nil && !bytes.Equal(data, numbered(page)) {
					t.Error("the region has other bytes")
				}
				_ = l.Output(r, "o", []byte(name), 0, page) // it may be gone
				if err := l.Deliver(outputs(numbered(page))); err != nil {
					t.Error(err)
				}
				if l.HasOutputs() && r.Unregister(name) == nil {
					t.Error("a region in use was unregistered")
				}
				l.Return()
				_ = r.Unregister(name) // others may use it
				_, _ = r.Status("")
			}
		})
	}
	all.Wait()
	if err := r.UnregisterAll(); err != nil || r.Mapped() != 0 {
		t.Errorf("%v, %d bytes at the end", err, r.Mapped())
	}
}

// A client can neither use up the mappings of the process nor its addresses.
func TestBounds(t *testing.T) {
	t.Parallel()
	key, file := enginetest.SharedFile(t, numbered(page))
	r := newRegions(t)
	made := 0
	for n := range 100_000 {
		switch err := r.Register(fmt.Sprint(n), key, 0, page); {
		case err == nil:
			made++
		case n < sharedmemory.MaxRegions:
			t.Fatal(err)
		default:
			failsWith(t, "one region more", err, fault.Exhausted, "there are 16384 regions, unregister one first")
		}
	}
	if made != sharedmemory.MaxRegions {
		t.Errorf("%d regions, want %d", made, sharedmemory.MaxRegions)
	}
	if err := r.UnregisterAll(); err != nil || r.Mapped() != 0 {
		t.Fatal(err)
	}
	if err := file.Truncate(sharedmemory.MaxMapped); err != nil { // no memory is behind it
		t.Fatal(err)
	}
	half := uint64(sharedmemory.MaxMapped / 2)
	register(t, r, "half", key, 0, half)
	failsWith(t, "too many bytes", r.Register("rest", key, 0, half+1), fault.Exhausted, "all regions together may have 1099511627776 bytes")
	register(t, r, "rest", key, half, half)
	failsWith(t, "a byte more", r.Register("more", key, 0, 1), fault.Exhausted, "all regions together")
	b := budget.New(0)
	account := b.Open(nil)
	defer account.Close()
	var l sharedmemory.Loan
	_, err := l.Input(r, account, []byte("half"), 0, half)
	failsWith(t, "an input larger than the memory", err, fault.Exhausted, "bytes of memory")
	l.Return()
	if b.Used() != 0 {
		t.Errorf("%d bytes are charged", b.Used())
	}
}

// A server that allows no regions has none.
func TestNone(t *testing.T) {
	t.Parallel()
	var r *sharedmemory.Regions
	const off = "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable."
	failsWith(t, "register", r.Register("r", "/r", 0, 1), fault.Unsupported, off)
	failsWith(t, "register CUDA's", r.RegisterCUDA("r"), fault.Unsupported, off)
	_, err := r.Status("r")
	failsWith(t, "status", err, fault.NotFound, "Unable to find system shared memory region: 'r'")
	if all, err := r.Status(""); all == nil || len(all) > 0 || err != nil {
		t.Errorf("status of all: %v, %v", all, err)
	}
	for _, err := range []error{r.Unregister("r"), r.UnregisterAll(), r.StatusCUDA("")} {
		if err != nil {
			t.Error(err)
		}
	}
	var l sharedmemory.Loan
	_, err = l.Input(r, nil, []byte("r"), 0, 1)
	failsWith(t, "input", err, fault.NotFound, "Unable to find shared memory region: 'r'")
	failsWith(t, "output", l.Output(r, "o", []byte("r"), 0, 1), fault.NotFound, "Unable to find shared memory region: 'r'")
	l.Return()
}

func TestCUDA(t *testing.T) {
	t.Parallel()
	key, _ := enginetest.SharedFile(t, numbered(page))
	r := newRegions(t)
	register(t, r, "r", key, 0, page)
	failsWith(t, "register", r.RegisterCUDA("c"), fault.InvalidArgument, "failed to register CUDA shared memory region: 'c', GPUs not supported")
	failsWith(t, "status", r.StatusCUDA("c"), fault.NotFound, "Unable to find cuda shared memory region: 'c'")
	failsWith(t, "status of a system region", r.StatusCUDA("r"), fault.NotFound, "The region named 'r' is registered as system shared memory, not CUDA shared memory")
}

// A mistake of our own is not taken for a short file.
func TestCopiedPanics(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("a panic was lost")
		}
	}()
	sharedmemory.Guarded(func() { _ = numbered(1)[len(os.Args):len(os.Args)][0] })
}
