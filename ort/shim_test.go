package ort

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The shim calls functions of ONNX Runtime's table by their place. The test compares the places
// with the binding's header, which is compiled into the program and declares the table.
func TestShimPlaces(t *testing.T) {
	t.Parallel()
	places := headerPlaces(t)
	shim, err := os.ReadFile("shim.h")
	if err != nil {
		t.Fatal(err)
	}
	slots := regexp.MustCompile(`(?m)^\tk(\w+) = (\d+),`).FindAllStringSubmatch(string(shim), -1)
	if len(slots) < 30 {
		t.Fatalf("only %d places found in shim.h", len(slots))
	}
	for _, slot := range slots {
		if want, ok := places[slot[1]]; !ok || strconv.Itoa(want) != slot[2] {
			t.Errorf("shim.h has %s at %s; the header at %d (%t)", slot[1], slot[2], want, ok)
		}
	}
}

func TestShimVersion(t *testing.T) {
	t.Parallel()
	shim, err := os.ReadFile("shim.h")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`#define ORT_API_VERSION (\d+)`).FindStringSubmatch(header(t))
	if want := fmt.Sprintf("API_VERSION = %s ", version[1]); !strings.Contains(string(shim), want) {
		t.Errorf("shim.h lacks %q", want)
	}
}

func header(t *testing.T) string {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/yalue/onnxruntime_go").Output()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "onnxruntime_c_api.h"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// headerPlaces returns the place of each function in struct OrtApi. It counts its four forms of
// declaration.
func headerPlaces(t *testing.T) map[string]int {
	t.Helper()
	text := regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*`).ReplaceAllString(header(t), "")
	_, body, ok := strings.Cut(text, "struct OrtApi {")
	if !ok {
		t.Fatal("the header has no struct OrtApi")
	}
	body, _, _ = strings.Cut(body, "\n};")
	places := map[string]int{}
	declaration := regexp.MustCompile(`ORT_API2_STATUS\(\s*(\w+)|ORT_CLASS_(RELEASE)\((\w+)\)|\(ORT_API_CALL\* (\w+)\)|ORT_API_T\([^,]+,\s*(\w+)`)
	for i, match := range declaration.FindAllStringSubmatch(body, -1) {
		name := match[1] + match[4] + match[5]
		if match[2] != "" {
			name = "Release" + match[3]
		}
		places[name] = i
	}
	return places
}
