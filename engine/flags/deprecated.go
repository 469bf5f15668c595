package flags

import (
	"fmt"
	"log/slog"
)

// deprecated has tritonserver's old options, with its texts.
func (o *Options) deprecated() []struct{ name, text string } {
	trace := func(name, setting string) string {
		return fmt.Sprintf("'--%s' has been deprecated and will be removed in future releases. Please use '--trace-config %s instead.", name, setting)
	}
	return []struct{ name, text string }{
		{"strict-model-config", "'--strict-model-config' has been deprecated! Please use '--disable-auto-complete-config' instead."},
		{"response-cache-byte-size", fmt.Sprintf("'--response-cache-byte-size' has been deprecated! This will default to the 'local' cache implementation with the provided byte size for its config. "+
			"Please use '--cache-config' instead. The equivalent --cache-config CLI args would be: '--cache-config=local,size=%d'", o.cacheBytes)},
		{"trace-file", trace("trace-file", "triton,file=<filepath>")},
		{"trace-level", trace("trace-level", "level=<OFF|TIMESTAMPS|TENSORS>")},
		{"trace-rate", trace("trace-rate", "rate=<rate value>")},
		{"trace-count", trace("trace-count", "count=<count value>")},
		{"trace-log-frequency", trace("trace-log-frequency", "triton,log-frequency=<log frequency value>")},
	}
}

// Warn logs a warning for options without a meaning for this engine, and for those that tritonserver has in
// place of others.
func (o *Options) Warn(log *slog.Logger) {
	for _, old := range o.deprecated() {
		if o.given(old.name) {
			log.Warn("Warning: " + old.text)
		}
	}
	if o.disableAutoComplete && o.given("strict-model-config") && !o.strictModelConfig {
		log.Warn("Warning: Overriding deprecated '--strict-model-config' from False to True in favor of '--disable-auto-complete-config'!")
	}
	for _, name := range o.unsupported.ignored() {
		log.Warn("option ignored: it has no effect on this engine", "option", name)
	}
}
