package export

import (
	"strings"

	"tuner/export/tuned"
)

// longestName leaves space for the targets' suffixes within the 63 characters of a label.
const longestName = 40

// DNSLabel makes a DNS-1035 label from any text. Characters other than letters and digits become
// dashes, and the first one is a letter. Kubernetes' services, KServe's names and Azure's endpoints
// need such a label.
func DNSLabel(text string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(text) {
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
			b.WriteRune(c)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	label := strings.Trim(b.String(), "-")
	if label == "" {
		return "model"
	}
	if label[0] <= '9' {
		label = "m-" + label
	}
	return strings.TrimRight(label[:min(longestName, len(label))], "-")
}

// defaultName returns the model's name, or the server's if it has several models.
func defaultName(models []tuned.Model) string {
	if len(models) == 1 {
		return DNSLabel(models[0].Name)
	}
	return "triton"
}
