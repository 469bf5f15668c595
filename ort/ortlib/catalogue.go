package ortlib

import (
	"fmt"
	"slices"
	"strings"

	"tuner/ort/ortlib/wheel"
	"tuner/ort/provider"
)

// release is one official build of ONNX Runtime, published as a Python wheel.
type release struct {
	flavour, version string
	platform         string // GOOS/GOARCH
	tag              string // pip's platform tag
	digest           string // SHA-256 of the wheel
}

// releases lists the builds that can be installed, the default version of each flavour first. All
// have C API 24 or newer, which package ort needs. An older and a newer cpu version are offered since
// versions differ in speed. The digests are those of the files on the Python package index when the version
// was pinned.
func releases() []release {
	return []release{
		{"cpu", "1.31.1", "linux/amd64", "manylinux_2_28_x86_64", "1f3dea47f2f0e5117c2404cea7d21fd253ae7836a3bf167a501cdfbb2600d536"},
		{"cpu", "1.31.1", "linux/arm64", "manylinux_2_28_aarch64", "0b9a492176886992e0e875f06bc0367e333f5fff11711a2d642e18b02f3009cc"},
		{"cpu", "1.31.1", "darwin/arm64", "macosx_14_0_arm64", "96dd2564b10ea7153ad9c207e7cd8e5917cb3ba521e0e0a62ac03486fdc8d56c"},
		{"cpu", "1.32.0", "linux/amd64", "manylinux_2_28_x86_64", "99e1074c4b2197accd5073052a465361be17b89c093b8ffb6e6bd8f986c52df8"},
		{"cpu", "1.32.0", "linux/arm64", "manylinux_2_28_aarch64", "e36c187006e7a7c8b8d6d57f1a209dd63f52430dca6c282b177718ad6b841054"},
		{"cpu", "1.32.0", "darwin/arm64", "macosx_14_0_arm64", "d52510bbbcc880c13b826f7d75cdf33ac5cf0bb864d960000fc29ce73f0cb83e"},
		{"cpu", "1.24.4", "linux/amd64", "manylinux_2_28_x86_64", "0d640eb9f3782689b55cfa715094474cd5662f2f137be6a6f847a594b6e9705c"},
		{"openvino", "1.24.1", "linux/amd64", "manylinux_2_28_x86_64", "d617fac2f59a6ab5ea59a788c3e1592240a129642519aaeaa774761dfe35150e"},
		{"cuda", "1.31.1", "linux/amd64", "manylinux_2_28_x86_64", "05d548956197b9d01f59b625de740e0d6be3593f874e241a12dc0362650ecdf7"},
	}
}

// spec describes the download of the release. A wheel for any Python version will do, since only
// its libraries are used.
func (r release) spec() wheel.Spec {
	build, _ := provider.BuildOf(r.flavour)
	return wheel.Spec{Requirement: build.Project + "==" + r.version, SHA256: r.digest, Platform: r.tag, PythonVersion: "3.12", ABI: "cp312"}
}

func (r release) name() string { return r.flavour + "@" + r.version }

// findRelease returns the release of a selector, such as cpu or cpu@1.31.1, on a platform.
func findRelease(selector, platform string) (release, error) {
	var offered []string
	for _, r := range releases() {
		if r.platform != platform {
			continue
		}
		if selector == r.flavour || selector == r.name() {
			return r, nil
		}
		offered = append(offered, r.name())
	}
	if len(offered) == 0 {
		return release{}, fmt.Errorf("cannot install runtime %q: there are no builds for %s; name your own library with --ort-library or %s", selector, platform, buildVariable)
	}
	return release{}, fmt.Errorf("cannot install runtime %q: for %s there are %s", selector, platform, strings.Join(slices.Compact(offered), ", "))
}
