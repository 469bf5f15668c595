package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// features: names, shared memory and poll mode.
func features() []attack {
	return []attack{
		{"C1", "names with slashes, dots and NUL in every place that takes a name", "refused with a text, nothing is opened or written outside", names},
		{"C2", "regions and places whose offsets and sizes overflow", "refused, others are served, memory bounded", overflows},
		{"C2", "files of regions that shrink, grow and go during requests, in a full /dev/shm", "an answer or an error each, the server lives", shrinking},
		{"C3", "a model that is copied for 30 s in poll mode, and one that never ends", "none is loaded half, what serves stays, others come and go meanwhile", halfCopied},
		{"C3", "model folders with circles of links, a link to /, and 60^60 ways, in poll mode", "other models come within 10 s", linkedFolders},
	}
}

// names sends names that lead elsewhere.
func names(ctx context.Context, s *scene) (string, error) {
	if err := errors.Join(s.add("simple", "simple", ""), s.add("victim", "simple", ""), s.write(sample(s, "simple"), "outside", "1", "model.onnx"), s.write(nil, "outside", "config.pbtxt")); err != nil {
		return "", err
	}
	v, err := s.serve(ctx, "", []string{"simple"}, "--allow-client-shm=true")
	if err != nil {
		return "", err
	}
	refused := 0
	for _, name := range []string{"../outside", "..", ".", "/outside", "a/../../outside", "simple/1", "simple/../simple", `..\outside`, "simple\x00", "\xff", " ", strings.Repeat("../", 1000) + "etc"} {
		escaped := strings.NewReplacer("/", "%2F", "\x00", "%00", "\xff", "%FF", " ", "%20", `\`, "%5C").Replace(name)
		body, _ := sum()
		for _, call := range []string{"GET /v2/models/%s", "GET /v2/models/%s/config", "GET /v2/models/%s/stats", "POST /v2/models/%s/infer", "GET /v2/models/%s/versions/..%%2F1/ready",
			"POST /v2/repository/models/%s/load", "POST /v2/systemsharedmemory/region/%s/register", "GET /v2/systemsharedmemory/region/%s/status", "POST /v2/models/%s/generate"} {
			method, path, _ := strings.Cut(fmt.Sprintf(call, escaped), " ")
			sent := body
			if strings.Contains(path, "/register") {
				sent = `{"key":"/` + strings.ToValidUTF8(strings.ReplaceAll(name, `\`, `\\`), "?") + `","offset":0,"byte_size":64}`
			}
			status, text, err := v.send(ctx, method, path, []byte(sent))
			if err != nil || status < 400 || len(text) > 64<<10 {
				return "", errors.Join(fmt.Errorf("%s %q got %d %s", method, path, status, cell(text)), err)
			}
			refused++
		}
		for _, config := range []string{
			`{"backend":"onnxruntime","default_model_filename":%s}`, `{"backend":"onnxruntime","input":[{"name":%s,"data_type":"TYPE_INT32","dims":[16]}]}`,
			`{"platform":"ensemble","input":[{"name":"a","data_type":"TYPE_INT32","dims":[16]}],"output":[{"name":"b","data_type":"TYPE_INT32","dims":[16]}],` +
				`"ensemble_scheduling":{"step":[{"model_name":%s,"model_version":-1,"input_map":{"INPUT0":"a"},"output_map":{"OUTPUT0":"b"}}]}}`,
		} {
			quoted, err := json.Marshal(strings.ToValidUTF8(name, "?"))
			if err != nil {
				return "", err
			}
			if name == "." && strings.Contains(config, "default_model_filename") {
				continue // the folder of the version, in which model.onnx is looked for
			}
			if err := v.LoadModel(ctx, "victim", fmt.Sprintf(config, quoted)); err == nil {
				return "", fmt.Errorf("a configuration with %q was taken: %s", name, config)
			}
			refused++
		}
	}
	return fmt.Sprintf("%d refused", refused), errors.Join(s.untouched(), v.serves(ctx))
}

// untouched checks that nothing has come into the scene's folder beside its own.
func (s *scene) untouched() error {
	all, err := os.ReadDir(s.dir)
	for _, e := range all {
		switch e.Name() {
		case "repository", "home", "tmp", "cache", "outside":
		default:
			err = errors.Join(err, fmt.Errorf("%s was written", e.Name()))
		}
	}
	return err
}

// shared serves the model simple in a mount namespace with its own /dev/shm of 16 MiB. It returns the path
// to that folder from here.
func (s *scene) shared(ctx context.Context) (*server, string, error) {
	if os.Geteuid() != 0 {
		return nil, "", notRun("a /dev/shm of its own needs root")
	}
	if err := s.add("simple", "simple", ""); err != nil {
		return nil, "", err
	}
	v, err := s.serve(ctx, `set -- unshare --mount /bin/sh -c 'mount -t tmpfs -o size=16m none /dev/shm && exec "$@"' sh "$@"`, []string{"simple"}, "--allow-client-shm=true")
	if err != nil {
		return nil, "", err
	}
	return v, fmt.Sprintf("/proc/%d/root/dev/shm", v.at.PID), nil
}

// register registers a region over HTTP.
func (v *server) register(ctx context.Context, name, key string, offset, size uint64) (int, string, error) {
	return v.send(ctx, "POST", "/v2/systemsharedmemory/region/"+name+"/register", fmt.Appendf(nil, `{"key":%q,"offset":%d,"byte_size":%d}`, key, offset, size))
}

// through asks the model simple with both inputs and an output in a region.
func (v *server) through(ctx context.Context, region string, offset, size, room uint64) (int, string, error) {
	place := func(at, n uint64) string {
		return fmt.Sprintf(`"parameters":{"shared_memory_region":%q,"shared_memory_offset":%d,"shared_memory_byte_size":%d}`, region, at, n)
	}
	return v.send(ctx, "POST", inferSimple, fmt.Appendf(nil, `{"inputs":[{"name":"INPUT0","datatype":"INT32","shape":[1,16],%s},{"name":"INPUT1","datatype":"INT32","shape":[1,16],%s}],`+
		`"outputs":[{"name":"OUTPUT0",%s},{"name":"OUTPUT1"}]}`, place(offset, size), place(offset, size), place(offset, room)))
}

func overflows(ctx context.Context, s *scene) (string, error) {
	v, folder, err := s.shared(ctx)
	if err != nil {
		return "", err
	}
	const page = 4096
	if err := errors.Join(os.WriteFile(folder+"/a", make([]byte, 2*page), 0o600), sparseFile(folder+"/huge", 1<<50)); err != nil {
		return "", err
	}
	limits := []uint64{0, 1, 63, 64, page - 1, page, page + 1, 2 * page, 1 << 31, 1 << 32, 1 << 62, math.MaxInt64, 1 << 63, math.MaxUint64 - page + 1, math.MaxUint64 - 63, math.MaxUint64}
	status, text, err := v.register(ctx, "a", "/a", page, page)
	if err != nil || status != 200 {
		return "", errors.Join(fmt.Errorf("a good region got %d %s", status, cell(text)), err)
	}
	if status, text, err := v.through(ctx, "a", 64, 64, 64); err != nil || status != 200 {
		return "", errors.Join(fmt.Errorf("a good place got %d %s", status, cell(text)), err)
	}
	refused := 0
	for _, offset := range limits {
		for _, size := range limits {
			isInside := offset <= 2*page && size > 0 && size <= 2*page-offset && offset%page == 0
			status, text, err := v.register(ctx, fmt.Sprintf("r%d-%d", offset, size), "/a", offset, size)
			if err != nil || (status == 200) != isInside {
				return "", errors.Join(fmt.Errorf("%d bytes from %d of a file of %d: %d %s", size, offset, 2*page, status, cell(text)), err)
			}
			isInside = offset < page && offset+64 <= page && size == 64
			status, text, err = v.through(ctx, "a", offset, size, size)
			if err != nil || (status == 200) != isInside {
				return "", errors.Join(fmt.Errorf("a place of %d bytes from %d in a region of %d: %d %s", size, offset, page, status, cell(text)), err)
			}
			if !isInside {
				refused++
			}
		}
	}
	// a region of a petabyte is refused, and places in one of half a terabyte take no memory for what they say
	if status, text, err := v.register(ctx, "petabyte", "/huge", 0, 1<<50); err != nil || status < 400 {
		return "", errors.Join(fmt.Errorf("a region of 1 PiB got %d %s", status, cell(text)), err)
	}
	if status, text, err := v.register(ctx, "huge", "/huge", 0, 1<<39); err != nil || status != 200 {
		return "", errors.Join(fmt.Errorf("a region of 512 GiB got %d %s", status, cell(text)), err)
	}
	for _, size := range []uint64{65, 1 << 20, 1 << 34, 1<<39 - 64} {
		if status, text, err := v.through(ctx, "huge", 64, size, 64); err != nil || status < 400 {
			return "", errors.Join(fmt.Errorf("an input of %d bytes got %d %s", size, status, cell(text)), err)
		}
	}
	seen, err := v.bounded(512 << 20)
	return fmt.Sprintf("%d of %d places refused, %s", refused, len(limits)*len(limits), seen), errors.Join(err, v.serves(ctx))
}

func sparseFile(path string, size int64) error {
	return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, size))
}

// shrinking changes the file of a region while requests use it, and fills the file system.
func shrinking(ctx context.Context, s *scene) (string, error) {
	v, folder, err := s.shared(ctx)
	if err != nil {
		return "", err
	}
	const size = 8 << 10
	path := folder + "/a"
	if err := sparseFile(path, size); err != nil {
		return "", err
	}
	if status, text, err := v.register(ctx, "a", "/a", 0, size); err != nil || status != 200 {
		return "", errors.Join(fmt.Errorf("a region got %d %s", status, cell(text)), err)
	}
	var over atomic.Bool
	time.AfterFunc(8*time.Second, func() { over.Store(true) })
	var group errgroup.Group
	group.Go(func() error {
		for i := 0; !over.Load(); i++ {
			var err error
			switch i % 4 {
			case 0:
				err = os.Truncate(path, 0)
			case 1: // no page of the file system is left for a region's holes
				_ = os.WriteFile(folder+"/full", make([]byte, 17<<20), 0o600)
			case 2:
				err = os.Truncate(path, size)
			case 3:
				err = os.Remove(folder + "/full")
			}
			if err != nil {
				return err
			}
			time.Sleep(5 * time.Millisecond)
		}
		return nil
	})
	var answered, failed atomic.Int64
	for i := range 4 {
		group.Go(func() error {
			for !over.Load() {
				status, text, err := v.through(ctx, "a", uint64(i)*2048, 64, 64)
				switch {
				case err != nil || status != 200 && !strings.Contains(text, "shared memory"):
					return errors.Join(fmt.Errorf("a request got %d %s", status, cell(text)), err)
				case status == 200:
					answered.Add(1)
				default:
					failed.Add(1)
				}
			}
			return nil
		})
	}
	n, _, err := v.steady(ctx, &over)
	if err := errors.Join(err, group.Wait(), v.serves(ctx)); err != nil {
		return "", err
	}
	if failed.Load() == 0 || answered.Load() == 0 {
		return "", fmt.Errorf("%d answers and %d errors: nothing was tried", answered.Load(), failed.Load())
	}
	return fmt.Sprintf("%d answers, %d errors, %d answers of others", answered.Load(), failed.Load(), n), nil
}

// polled serves the repository in poll mode.
func (s *scene) polled(ctx context.Context) (*server, error) {
	if err := s.add("simple", "simple", ""); err != nil {
		return nil, err
	}
	return s.serve(ctx, "", nil, "--model-control-mode=poll", "--repository-poll-secs=1")
}

// comes waits until a model is ready, or is no longer, while others are served.
func (v *server) comes(ctx context.Context, model string, ready bool, patience time.Duration) error {
	for begin := time.Now(); ; {
		is, err := v.ModelReady(ctx, model)
		if err := errors.Join(err, v.adds(ctx, 10*time.Second)); err != nil {
			return err
		}
		if is == ready {
			return nil
		}
		if time.Since(begin) > patience {
			return fmt.Errorf("model %s: ready is %t after %v", model, is, patience)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// halfCopied writes a new version of a model in small parts, and another model that is never whole.
func halfCopied(ctx context.Context, s *scene) (string, error) {
	v, err := s.polled(ctx)
	if err != nil {
		return "", err
	}
	if err := errors.Join(s.add("copied", "simple", "max_batch_size: 2\n"), v.comes(ctx, "copied", true, 10*time.Second)); err != nil {
		return "", err
	}
	data := sample(s, "mlp")
	var over atomic.Bool
	var group errgroup.Group
	for _, name := range []string{"copied", "endless"} {
		path := s.path("repository", name, "2", "model.onnx")
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return "", err
		}
		f, err := os.Create(path)
		if err != nil {
			return "", err
		}
		defer f.Close()
		group.Go(func() error {
			for i := 0; i < 100 && ctx.Err() == nil; i++ {
				part := data[i*len(data)/100 : (i+1)*len(data)/100]
				if name == "endless" {
					part = []byte{0}
				}
				if _, err := f.Write(part); err != nil {
					return err
				}
				time.Sleep(300 * time.Millisecond)
			}
			return nil
		})
	}
	time.AfterFunc(12*time.Second, func() { over.Store(true) })
	var visits int
	for ; !over.Load(); visits++ { // other models come and go meanwhile
		name := fmt.Sprint("visitor", visits)
		err := errors.Join(s.add(name, "simple", ""), v.comes(ctx, name, true, 10*time.Second), os.RemoveAll(s.path("repository", name)), v.comes(ctx, name, false, 10*time.Second))
		if err != nil {
			return "", err
		}
		for version, want := range map[string]int{"1": 200, "2": 400} {
			if status, text, err := v.get(ctx, "/v2/models/copied/versions/"+version+"/ready"); err != nil || status != want {
				return "", errors.Join(fmt.Errorf("version %s of the model that is copied: %d %s", version, status, cell(text)), err)
			}
		}
	}
	if err := group.Wait(); err != nil {
		return "", err
	}
	if log := v.log.String(); strings.Contains(log, "cannot load model") {
		return "", fmt.Errorf("a half was loaded: %s", last(log[strings.Index(log, "cannot load model"):]))
	}
	for begin := time.Now(); ; time.Sleep(100 * time.Millisecond) { // now that it is whole
		if status, _, err := v.get(ctx, "/v2/models/copied/versions/2/ready"); err != nil || status == 200 {
			return fmt.Sprintf("%d models came and went, the copy was taken %.1f s after its end", visits, time.Since(begin).Seconds()), errors.Join(err, v.serves(ctx))
		}
		if time.Since(begin) > 10*time.Second {
			return "", errors.New("the copy was not taken within 10 s")
		}
	}
}

// linkedFolders puts models of links into the repository.
func linkedFolders(ctx context.Context, s *scene) (string, error) {
	v, err := s.polled(ctx)
	if err != nil {
		return "", err
	}
	link := func(to string, elements ...string) error {
		path := s.path(append([]string{"repository"}, elements...)...)
		return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.Symlink(to, path))
	}
	err = errors.Join(link("circle", "circle"), link("circle", "inner", "circle"), link("/", "root", "1"), link("nowhere", "nowhere"),
		link("model.onnx", "itself", "1", "model.onnx"), s.write([]byte("x"), "repository", "file"))
	const folders = 60
	for i := range folders {
		for k := range folders {
			err = errors.Join(err, link(s.path("repository", "ways", fmt.Sprint(k)), "ways", fmt.Sprint(i), fmt.Sprint("to", k)))
		}
	}
	if err != nil {
		return "", err
	}
	begin := time.Now()
	if err := errors.Join(s.add("late", "simple", ""), v.comes(ctx, "late", true, 10*time.Second)); err != nil {
		return "", err
	}
	seen, err := v.bounded(1 << 30)
	return fmt.Sprintf("another model came after %.1f s, %s", time.Since(begin).Seconds(), seen), errors.Join(err, v.serves(ctx))
}
