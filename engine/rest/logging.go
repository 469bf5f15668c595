package rest

import (
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"tuner/engine/fault"
	"tuner/engine/logging"
	"tuner/engine/rest/document"
)

// begin begins the line of a request.
func begin(ctx *fasthttp.RequestCtx) *logging.Request {
	head := &ctx.Request.Header
	return &logging.Request{
		Begun: time.Now(), Protocol: "http", Client: ctx.RemoteAddr().String(), Call: string(head.Method()) + " " + string(head.RequestURI()),
	}
}

// note adds the line of a request whose answer is ready.
func (f *Frontend) note(b *reader) {
	b.entry.Took = time.Since(b.entry.Begun)
	b.entry.Status = strconv.Itoa(b.ctx.Response.StatusCode())
	f.options.Requests.Add(*b.entry)
}

// logging answers with the settings of the log. A POST changes those that it names first, in
// Triton's order, up to the first one that is wrong.
func (f *Frontend) logging(b *reader) {
	if b.ctx.IsPost() {
		if err := f.setLogging(b); err != nil {
			fail(b.ctx, err)
			return
		}
	}
	l := f.options.Settings
	s := l.Settings()
	reply(b.ctx, logSettingsAnswer{l.File(), s.Info, s.Warning, s.Error, s.Verbose, s.Format}, nil)
}

// logSettingsAnswer has the settings in Triton's order.
type logSettingsAnswer struct {
	File    string         `json:"log_file"`
	Info    bool           `json:"log_info"`
	Warning bool           `json:"log_warning"`
	Error   bool           `json:"log_error"`
	Verbose uint32         `json:"log_verbose_level"`
	Format  logging.Format `json:"log_format"`
}

func (f *Frontend) setLogging(b *reader) error {
	d, err := requireDocument(b)
	if err != nil {
		return err
	}
	l := f.options.Settings
	for _, setting := range []struct {
		name string
		set  func(i int32) error
	}{
		{"log_file", func(int32) error {
			return fault.Errorf(fault.Unsupported, "log file location can not be updated through network protocol")
		}},
		{"log_info", switched(d, l.SetInfo)},
		{"log_warning", switched(d, l.SetWarning)},
		{"log_error", switched(d, l.SetError)},
		{"log_verbose_level", func(i int32) error {
			level, err := d.Unsigned(i)
			if err == nil && level > logging.MaxVerbose {
				err = fault.Errorf(fault.InvalidArgument, "log_verbose_level %d is larger than %d", level, logging.MaxVerbose)
			}
			if err == nil {
				l.SetVerbose(uint32(level))
			}
			return err
		}},
		{"log_format", func(i int32) error {
			text, err := d.Text(i)
			if err != nil {
				return err
			}
			format := logging.Format(text)
			if !format.Known() {
				return fault.Errorf(fault.Unavailable, "invalid argument for --log_format, got: %s", text)
			}
			l.SetFormat(format)
			return nil
		}},
	} {
		if i := d.Find(0, setting.name); i != document.None && d.Kind(i) != 'n' {
			if err := setting.set(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// switched returns a function that sets a switch to a boolean of the document.
func switched(d *document.JSON, set func(bool)) func(i int32) error {
	return func(i int32) error {
		on, err := d.Bool(i)
		if err == nil {
			set(on)
		}
		return err
	}
}
