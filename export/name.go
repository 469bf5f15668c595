package export

import "strings"

// longestName leaves room for what the targets append, within the 63 characters of a label.
const longestName = 40

// dnsLabel makes a DNS-1035 label of any text: what is not a letter or digit becomes a dash, and
// the first is a letter. Services of Kubernetes, KServe's names and Azure's endpoints need one.
func dnsLabel(text string) string {
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

// defaultName is the model's, or that of the server where it has several.
func defaultName(models []Model) string {
	if len(models) == 1 {
		return dnsLabel(models[0].Name)
	}
	return "triton"
}
