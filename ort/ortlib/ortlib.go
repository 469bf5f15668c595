// Package ortlib finds and installs builds of ONNX Runtime, called flavours: cpu, openvino, cuda.
// Several versions may be installed side by side. It passes the path of a library to the code that
// starts an engine process. It never loads a library, so that tuner itself stays free of native
// code. Installed builds are pinned by version and digest, and are downloaded by the user's own
// pip.
package ortlib

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"tuner/ort/ortlib/wheel"
	"tuner/ort/provider"
)

// External is the flavour of a library that the user named.
const External = "external"

// Build is a usable ONNX Runtime library on this machine.
type Build struct {
	Flavour string // cpu, openvino, cuda, or External
	Version string // such as 1.31.1; "" if the file name of an external library has none
	Library string // path of the library: …/libonnxruntime.so.1.31.1
	Dir     string // folder of the library, with its providers and the files that they load
}

// Name returns flavour@version, as in selectors.
func (b Build) Name() string {
	if b.Version == "" {
		return b.Flavour
	}
	return b.Flavour + "@" + b.Version
}

// Environment returns base with the build's folder first on the loader's path. It is the
// environment for a process that opens the library.
func (b Build) Environment(base []string) []string {
	variable := "LD_LIBRARY_PATH"
	if runtime.GOOS == "darwin" {
		variable = "DYLD_LIBRARY_PATH"
	}
	folders := b.Dir
	env := slices.DeleteFunc(slices.Clone(base), func(entry string) bool {
		others, found := strings.CutPrefix(entry, variable+"=")
		if found && others != "" {
			folders = b.Dir + string(os.PathListSeparator) + others
		}
		return found
	})
	return append(env, variable+"="+folders)
}

// Store is a folder of installed builds.
type Store struct {
	dir      string
	platform string // GOOS/GOARCH
	shipped  string // a second folder, never written to: builds that came with tuner; may be ""
}

// NewStore returns the store in a cache folder. It does not create the folder yet.
func NewStore(cacheDir string) Store {
	return StoreFor(cacheDir, runtime.GOOS+"/"+runtime.GOARCH)
}

// StoreFor returns a store of builds for a platform, given as GOOS/GOARCH. Packages of tuner are
// made with it.
func StoreFor(cacheDir, platform string) Store {
	return Store{dir: filepath.Join(cacheDir, "runtimes"), platform: platform}
}

// UserStore returns the store in the user's cache folder: TUNER_CACHE, else "tuner" in the system's
// folder for caches. It also has the builds that came with tuner.
func UserStore() (Store, error) {
	dir := os.Getenv("TUNER_CACHE")
	if dir == "" {
		caches, err := os.UserCacheDir()
		if err != nil {
			return Store{}, fmt.Errorf("cannot find your cache folder: %w; set TUNER_CACHE", err)
		}
		dir = filepath.Join(caches, "tuner")
	}
	store := NewStore(dir)
	if program, err := os.Executable(); err == nil {
		store.shipped = shippedBeside(program)
	}
	return store, nil
}

// shippedBeside returns the folder of the builds that came with a program: lib/tuner/runtimes beside
// its folder bin. Packages of tuner have it there. A link to the program, such as that of `uv tool
// install`, is followed.
func shippedBeside(program string) string {
	if target, err := filepath.EvalSymlinks(program); err == nil {
		program = target
	}
	return filepath.Join(filepath.Dir(filepath.Dir(program)), "lib", "tuner", "runtimes")
}

// Offered lists the selectors that Install accepts on this platform, as flavour@version, the
// default of each flavour first.
func (s Store) Offered() []string {
	var names []string
	for _, r := range releases() {
		if r.platform == s.platform {
			names = append(names, r.name())
		}
	}
	return names
}

// Install installs a build, such as cpu or cpu@1.31.1. If it is installed already, Install returns
// it without a download. It replaces a damaged build. progress receives lines for people. An
// interrupted or failed installation leaves no build; the next one removes its other files.
// Processes that install at the same time wait for each other.
func (s Store) Install(ctx context.Context, selector string, progress io.Writer) (Build, error) {
	r, err := findRelease(selector, s.platform)
	if err != nil {
		return Build{}, err
	}
	if build, err := s.open(r.name()); err == nil {
		return build, nil
	}
	unlock, err := s.lock(ctx, progress)
	if err != nil {
		return Build{}, fmt.Errorf("cannot install %s: %w", r.name(), err)
	}
	defer unlock()
	if build, err := s.open(r.name()); err == nil {
		return build, nil // installed by another process while this one waited
	}
	if err := s.fetch(ctx, r, progress); err != nil {
		return Build{}, err
	}
	build, err := s.open(r.name())
	if err != nil {
		return Build{}, s.damage(r.name(), err).Err
	}
	return build, nil
}

// fetch downloads and unpacks a release. It replaces a build that cannot be used. The store must be
// locked.
func (s Store) fetch(ctx context.Context, r release, progress io.Writer) error {
	downloads := filepath.Join(s.dir, "downloads")
	for _, pattern := range []string{filepath.Join(s.dir, ".*@*"), filepath.Join(downloads, "download-*")} {
		leftovers, err := filepath.Glob(pattern)
		for _, path := range leftovers {
			err = errors.Join(err, os.RemoveAll(path))
		}
		if err != nil {
			return fmt.Errorf("cannot remove the files of an interrupted installation: %w", err)
		}
	}
	file, err := wheel.Fetch(ctx, r.spec(), downloads, progress)
	if ctx.Err() != nil {
		return err
	}
	if err != nil {
		return fmt.Errorf("%w\n(a library that you have already can be named with --ort-library or %s)", err, buildVariable)
	}
	if err := s.unpack(file, r.name()); err != nil {
		return err
	}
	return os.RemoveAll(downloads)
}

// unpack unpacks a wheel as an installed build. It replaces a damaged build of that name.
func (s Store) unpack(file, name string) error {
	dir := filepath.Join(s.dir, name)
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("cannot replace the damaged runtime: %w", err)
	}
	return wheel.Unpack(file, dir, isWanted)
}

// isWanted selects the libraries and the licences in a wheel. The rest is Python code.
func isWanted(name string) bool {
	folder, base := path.Split(name)
	if folder == "onnxruntime/" {
		return base == "LICENSE" || base == "ThirdPartyNotices.txt" || base == "Privacy.md"
	}
	return folder == "onnxruntime/capi/" && strings.HasPrefix(base, "lib") && (strings.Contains(base, ".so") || strings.HasSuffix(base, ".dylib"))
}

// libraryFile matches ONNX Runtime's library on Linux and macOS, and captures the version.
var libraryFile = regexp.MustCompile(`^libonnxruntime(?:\.so\.([0-9.]+)|\.([0-9.]+)\.dylib)$`)

func libraryVersion(base string) (version string, ok bool) {
	match := libraryFile.FindStringSubmatch(base)
	if match == nil {
		return "", false
	}
	return match[1] + match[2], true
}

// open reads an installed build, or else the shipped build of that name.
func (s Store) open(name string) (Build, error) {
	build, err := openIn(s.dir, name)
	if s.shipped != "" && errors.Is(err, fs.ErrNotExist) {
		if shipped, err := openIn(s.shipped, name); err == nil {
			return shipped, nil
		}
	}
	return build, err
}

// openIn reads a build below a folder. Its folder was complete at first, since a rename put it
// there. The error says what has changed since.
func openIn(folder, name string) (Build, error) {
	flavour, _, _ := strings.Cut(name, "@")
	dir := filepath.Join(folder, name, "onnxruntime", "capi")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return Build{}, err
	}
	for _, entry := range entries {
		version, ok := libraryVersion(entry.Name())
		if !ok {
			continue
		}
		library := filepath.Join(dir, entry.Name())
		if info, err := os.Stat(library); err != nil {
			return Build{}, err
		} else if !info.Mode().IsRegular() {
			return Build{}, fmt.Errorf("%q is not a regular file", library)
		}
		return Build{flavour, version, library, dir}, nil
	}
	return Build{}, fmt.Errorf("there is no ONNX Runtime library in %q", dir)
}

// Damaged is an installed build that cannot be used.
type Damaged struct {
	Name string // flavour@version
	Dir  string
	Err  error // the fault and the remedy
}

// damage describes an installed build that does not open.
func (s Store) damage(name string, cause error) Damaged {
	dir := filepath.Join(s.dir, name)
	remedy := "delete " + strconv.Quote(dir)
	if _, err := findRelease(name, s.platform); err == nil {
		remedy = fmt.Sprintf("run 'tuner runtime install %s', which repairs it, or %s", name, remedy)
	}
	return Damaged{name, dir, fmt.Errorf("runtime %q is damaged: %w; %s", name, cause, remedy)}
}

// List returns the usable installed builds, by flavour, the newest version first. A store that does
// not exist yet is empty.
func (s Store) List() ([]Build, error) {
	builds, _, err := s.scan()
	return builds, err
}

// Damaged returns the installed builds that cannot be used, by name.
func (s Store) Damaged() ([]Damaged, error) {
	_, damaged, err := s.scan()
	return damaged, err
}

// scan opens each folder of a build, or link to one. An installed build hides a shipped one of its
// name.
func (s Store) scan() (builds []Build, damaged []Damaged, err error) {
	names, err := s.names()
	if err != nil {
		return nil, nil, fmt.Errorf("cannot list the installed runtimes: %w", err)
	}
	for _, name := range names {
		build, err := s.open(name)
		if err != nil {
			damaged = append(damaged, s.damage(name, err))
			continue
		}
		builds = append(builds, build)
	}
	slices.SortFunc(builds, func(a, b Build) int {
		return cmp.Or(cmp.Compare(rank(a.Flavour), rank(b.Flavour)), cmp.Compare(a.Flavour, b.Flavour), compareVersions(b.Version, a.Version))
	})
	return builds, damaged, nil
}

// names lists the builds in both folders, as flavour@version.
func (s Store) names() ([]string, error) {
	var names []string
	for _, dir := range []string{s.dir, s.shipped} {
		if dir == "" {
			continue
		}
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, entry := range entries {
			name := entry.Name()
			if strings.HasPrefix(name, ".") || !strings.Contains(name, "@") || slices.Contains(names, name) {
				continue // a download or unpacking in progress
			}
			if info, err := os.Stat(filepath.Join(dir, name)); err == nil && !info.IsDir() {
				continue
			}
			names = append(names, name)
		}
	}
	return names, nil
}

// rank orders flavours. A user who names none gets the first.
func rank(flavour string) int {
	builds := provider.Builds()
	if i := slices.IndexFunc(builds, func(b provider.Build) bool { return b.Flavour == flavour }); i >= 0 {
		return i
	}
	return len(builds)
}

// compareVersions compares number by number: 1.9.0 is older than 1.31.1.
func compareVersions(a, b string) int {
	numbers := func(version string) []int {
		var list []int
		for field := range strings.SplitSeq(version, ".") {
			n, _ := strconv.Atoi(field) // a field that is not a number counts as 0
			list = append(list, n)
		}
		return list
	}
	return slices.Compare(numbers(a), numbers(b))
}

// Find returns the installed build for a selector: cpu@1.31.1; cpu, which is its newest version; or
// "", which is any build, cpu before others. It skips damaged builds. If there is no other, the
// error describes the damaged one.
func (s Store) Find(selector string) (Build, error) {
	builds, damaged, err := s.scan()
	if err != nil {
		return Build{}, err
	}
	var names []string
	for _, build := range builds {
		if isSelected(build.Name(), selector) {
			return build, nil
		}
		names = append(names, build.Name())
	}
	for _, d := range damaged {
		if isSelected(d.Name, selector) {
			return Build{}, d.Err
		}
	}
	if selector == "" {
		return Build{}, errors.New("no ONNX Runtime is installed; run 'tuner runtime install cpu', or name a library with --ort-library or " + buildVariable)
	}
	if len(names) == 0 {
		names = []string{"none"}
	}
	remedy := fmt.Sprintf("run 'tuner runtime install %s'", selector)
	if _, err := findRelease(selector, s.platform); err != nil {
		remedy = err.Error()
	}
	return Build{}, fmt.Errorf("runtime %q is not installed (installed: %s); %s", selector, strings.Join(names, ", "), remedy)
}

// isSelected reports whether a selector names a build (flavour@version).
func isSelected(build, selector string) bool {
	flavour, _, _ := strings.Cut(build, "@")
	return selector == "" || selector == flavour || selector == build
}

// buildVariable is the environment variable that names a build if no flag does.
const buildVariable = "TUNER_ORT_LIBRARY"

// IsNamed reports whether a --ort-library flag or the environment names a build. Then only that
// build is used.
func IsNamed(flag string) bool { return flag != "" || os.Getenv(buildVariable) != "" }

// Resolve returns the build to use. The first of these that is set decides:
//
//   - the --ort-library flag, which names a library file or an installed build (cpu, cpu@1.31.1)
//   - TUNER_ORT_LIBRARY, in the same form
//   - the build that Find("") returns
//
// The name of a flavour is never a file. A file with such a name needs a slash: ./cpu.
func Resolve(flag string) (Build, error) {
	if flag != "" {
		return named("--ort-library", flag)
	}
	if value := os.Getenv(buildVariable); value != "" {
		return named(buildVariable, value)
	}
	store, err := UserStore()
	if err != nil {
		return Build{}, err
	}
	return store.Find("")
}

// ResolveAll returns the builds that a user compares, in the order of the selectors: cpu,
// cpu@1.31.1, or a library file. It reports all missing builds together, and also two selectors of
// one build (CheckDistinct).
func ResolveAll(selectors []string) ([]Build, error) {
	var builds []Build
	var used []string // the selector of each build
	var errs []error
	for _, selector := range selectors {
		build, err := named("runtime", selector)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		builds, used = append(builds, build), append(used, selector)
	}
	if err := errors.Join(append(errs, CheckDistinct(builds, used))...); err != nil {
		return nil, err
	}
	return builds, nil
}

// SameError means that two selectors name one build, or builds with the same name. Results
// distinguish builds by name.
type SameError struct {
	Selectors [2]string
	Name      string
}

func (e *SameError) Error() string {
	return fmt.Sprintf("runtime %q and %q are both %s: leave one out", e.Selectors[0], e.Selectors[1], e.Name)
}

// CheckDistinct reports builds that are the same, or have the same name, each as a SameError.
// selectors[i] names builds[i].
func CheckDistinct(builds []Build, selectors []string) error {
	var errs []error
	for i, build := range builds {
		same := slices.IndexFunc(builds[:i], func(b Build) bool { return b.Library == build.Library || b.Name() == build.Name() })
		if same >= 0 {
			errs = append(errs, &SameError{[2]string{selectors[same], selectors[i]}, build.Name()})
		}
	}
	return errors.Join(errs...)
}

// named returns the build that a user has named by a file or a selector. source says where it was
// named.
func named(source, value string) (Build, error) {
	if isFile(value) {
		return externalBuild(source, value)
	}
	store, err := UserStore()
	if err != nil {
		return Build{}, err
	}
	build, err := store.Find(value)
	if err != nil {
		return Build{}, fmt.Errorf("%s: %q is not a library file, and %w", source, value, err)
	}
	return build, nil
}

// isFile reports whether a value is a file and not a selector. Selectors have no slash. The name of
// a flavour is a selector even if a file has that name.
func isFile(value string) bool {
	if strings.ContainsRune(value, os.PathSeparator) {
		return true
	}
	if slices.ContainsFunc(releases(), func(r release) bool { return strings.HasPrefix(value+"@", r.flavour+"@") }) {
		return false
	}
	_, err := os.Stat(value)
	return err == nil
}

// externalBuild describes a library that the user named. source says where.
func externalBuild(source, library string) (Build, error) {
	absolute, err := filepath.Abs(library)
	if err != nil {
		return Build{}, fmt.Errorf("%s: %w", source, err)
	}
	info, err := os.Stat(absolute)
	if err != nil {
		return Build{}, fmt.Errorf("%s: %w; name the library file, or leave it out and run 'tuner runtime install cpu'", source, err)
	}
	if info.IsDir() {
		return Build{}, fmt.Errorf("%s: %q is a folder; name the library file in it (libonnxruntime.so.<version>)", source, library)
	}
	version, _ := libraryVersion(filepath.Base(absolute))
	return Build{External, version, absolute, filepath.Dir(absolute)}, nil
}
