package rest

import (
	"bytes"
	"net/http"

	"github.com/valyala/fasthttp"
)

// refusal is the answer to a request that is not served, whatever its body is.
type refusal struct {
	status int
	text   string
	isLast bool // the rest of the connection cannot be trusted
}

// framed returns a refusal if the end of a request is uncertain, nil otherwise. fasthttp itself
// refuses most of such requests. It accepts others that a proxy in front may read differently. The
// proxy might take a part of this request for the next one, or the reverse (RFC 9112, sections 2.2,
// 5.1, 5.2, 6.1 and 11.2).
func framed(head *fasthttp.RequestHeader) *refusal {
	if p := head.Protocol(); string(p) != "HTTP/1.1" && string(p) != "HTTP/1.0" {
		return &refusal{fasthttp.StatusHTTPVersionNotSupported, "only HTTP/1.1 and HTTP/1.0 are served", true}
	}
	hasLength, hasEncoding := false, false
	for rest := head.RawHeaders(); len(rest) > 0 && string(rest) != "\r\n"; { // an empty line ends them
		end := bytes.IndexByte(rest, '\n')
		if end < 1 || rest[end-1] != '\r' {
			return malformed("its headers do not end with CR and LF")
		}
		name := nameOf(rest[:end])
		switch {
		case name == nil:
			return malformed("its headers are not lines of the form NAME: VALUE")
		case isHeader(name, fasthttp.HeaderContentLength):
			hasLength = true
		case isHeader(name, fasthttp.HeaderTransferEncoding):
			hasEncoding = true
			if value := rest[len(name)+1 : end]; !bytes.EqualFold(bytes.TrimSpace(value), []byte("chunked")) {
				return malformed("Transfer-Encoding must be chunked")
			}
		}
		rest = rest[end+1:]
	}
	if hasLength && hasEncoding {
		return malformed("it has both Content-Length and Transfer-Encoding")
	}
	return nil
}

// nameOf returns the text before the colon of a header. It returns nil if there is no colon, or a
// gap before it, as in a folded line.
func nameOf(line []byte) []byte {
	for i, c := range line {
		if c == ':' {
			return line[:i]
		}
		if c <= ' ' {
			return nil
		}
	}
	return nil
}

func malformed(why string) *refusal {
	return &refusal{http.StatusBadRequest, "cannot read the request: " + why, true}
}

func isHeader(name []byte, header string) bool {
	return len(name) == len(header) && bytes.EqualFold(name, []byte(header))
}
