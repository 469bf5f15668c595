package grpcapi

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	pb "tuner/engine/api/inferencepb"
	"tuner/engine/fault"
	"tuner/engine/logging"
)

// begin begins the line of a call.
func begin(ctx context.Context, call string) *logging.Request {
	q := &logging.Request{Begun: time.Now(), Protocol: "grpc", Call: call}
	if p, ok := peer.FromContext(ctx); ok && p.Addr != nil {
		q.Client = p.Addr.String()
	}
	return q
}

// describe says in a line which inference a message has asked for. entry may be nil.
func (m *message) describe(entry *logging.Request) {
	if entry != nil { // texts of the message are not made for nobody
		entry.Of(string(m.model), m.request.Version, string(m.id))
	}
}

// note adds the line of a call that has been answered. q may be nil.
func (s *service) note(q *logging.Request, err error) {
	if q == nil {
		return
	}
	q.Took = time.Since(q.Begun)
	q.Status = status.Code(err).String()
	s.requests.Add(*q)
}

// noted is unary, with a line for the call.
func (s *service) noted(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	if !s.requests.Wanted() {
		return s.unary(ctx, request, info, handle)
	}
	entry := begin(ctx, info.FullMethod)
	answer, err := s.unary(ctx, request, info, handle)
	s.note(entry, err)
	return answer, err
}

// LogSettings answers with the settings of the log. It changes those that are named first, in
// Triton's order, up to the first one that is wrong.
func (s *service) LogSettings(_ context.Context, r *pb.LogSettingsRequest) (*pb.LogSettingsResponse, error) {
	if err := setLogging(s.settings, r.GetSettings()); err != nil {
		return nil, statusOf(err)
	}
	now := s.settings.Settings()
	text := func(v string) *pb.LogSettingsResponse_SettingValue {
		return &pb.LogSettingsResponse_SettingValue{ParameterChoice: &pb.LogSettingsResponse_SettingValue_StringParam{StringParam: v}}
	}
	on := func(v bool) *pb.LogSettingsResponse_SettingValue {
		return &pb.LogSettingsResponse_SettingValue{ParameterChoice: &pb.LogSettingsResponse_SettingValue_BoolParam{BoolParam: v}}
	}
	return &pb.LogSettingsResponse{Settings: map[string]*pb.LogSettingsResponse_SettingValue{
		"log_file": text(s.settings.File()), "log_info": on(now.Info), "log_warning": on(now.Warning), "log_error": on(now.Error),
		"log_verbose_level": {ParameterChoice: &pb.LogSettingsResponse_SettingValue_Uint32Param{Uint32Param: now.Verbose}},
		"log_format":        text(string(now.Format)),
	}}, nil
}

func setLogging(l *logging.Log, settings map[string]*pb.LogSettingsRequest_SettingValue) error {
	if _, named := settings["log_file"]; named {
		return fault.Errorf(fault.Unsupported, "log file location can not be updated through network protocol")
	}
	for _, one := range []struct {
		name string
		set  func(bool)
	}{{"log_info", l.SetInfo}, {"log_warning", l.SetWarning}, {"log_error", l.SetError}} {
		value, named := settings[one.name]
		if !named {
			continue
		}
		on, ok := value.GetParameterChoice().(*pb.LogSettingsRequest_SettingValue_BoolParam)
		if !ok {
			return fault.Errorf(fault.InvalidArgument, "expect boolean for '%s'", one.name)
		}
		one.set(on.BoolParam)
	}
	if value, named := settings["log_verbose_level"]; named {
		level, ok := value.GetParameterChoice().(*pb.LogSettingsRequest_SettingValue_Uint32Param)
		if !ok || level.Uint32Param > logging.MaxVerbose {
			return fault.Errorf(fault.InvalidArgument, "expect int32 for 'log_verbose_level'")
		}
		l.SetVerbose(level.Uint32Param)
	}
	value, named := settings["log_format"]
	if !named {
		return nil
	}
	text, ok := value.GetParameterChoice().(*pb.LogSettingsRequest_SettingValue_StringParam)
	if !ok {
		return fault.Errorf(fault.InvalidArgument, "expect string for 'log_format'")
	}
	format := logging.Format(text.StringParam)
	if !format.Known() {
		return fault.Errorf(fault.InvalidArgument, "invalid argument for log_format, got: %s", text.StringParam)
	}
	l.SetFormat(format)
	return nil
}
