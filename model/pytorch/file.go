package pytorch

import (
	"path/filepath"
	"slices"
	"strings"
)

// IsFile reports whether a file is PyTorch's, from its name.
func IsFile(path string) bool {
	return slices.Contains([]string{".pt", ".pth"}, strings.ToLower(filepath.Ext(path)))
}
