// SPDX-License-Identifier: BSD-2-Clause
//
// A design compiled by Verilator as a model (hdl/model.h). `nonic hdl build` compiles it with each
// design, which Verilator calls Vdesign; HDL_NAME is the name of its top module.
#include "Vdesign.h"
#include "verilated.h"
#include "verilated_fst_c.h"

#include "hdl/dpi.h"
#include "hdl/port.h"

#define TEXT_OF(name) #name
#define TEXT(name)    TEXT_OF(name)

struct hdl_model {
    VerilatedContext context;
    Vdesign *top;
    VerilatedFstC *waves;
    uint64_t waves_from_ps, waves_to_ps;
    struct hdl_attached attached;
};

static struct hdl_model *open_model(const struct hdl_model_ops *, const struct hdl_host *host,
                                    uint64_t seed)
{
    hdl_model *model = new hdl_model;
    model->waves = nullptr;
    model->attached.host = host;
    model->attached.refused = false;
    model->attached.now_ps = 0;
    model->context.randSeed(static_cast<int>(seed | 1));
    model->context.randReset(2);
    model->context.traceEverOn(true);
    model->top = new Vdesign{&model->context, ""};
    hdl_attach_to(&model->attached);
    model->top->clk = 0;
    model->top->rst = 1;
    model->top->eval();
    hdl_attach_to(nullptr);
    if (model->attached.refused) {
        model->top->final();
        delete model->top;
        delete model;
        return nullptr;
    }
    return model;
}

static void reset_model(struct hdl_model *model, bool asserted)
{
    model->top->rst = asserted;
    model->top->eval(); // What follows from rst alone is there before the edge.
}

// Verilator has to see both edges. Outputs of the design are sampled before the rising one, and its
// inputs change after it: nonic_axis does so by non-blocking assignments.
static void step_model(struct hdl_model *model, uint64_t now_ps, uint64_t half_period_ps)
{
    const bool waves = model->waves != nullptr && now_ps >= model->waves_from_ps &&
                       now_ps < model->waves_to_ps;
    model->attached.now_ps = now_ps;
    model->context.time(now_ps);
    model->top->clk = 1;
    model->top->eval();
    if (waves) {
        model->waves->dump(now_ps);
    }
    model->top->clk = 0;
    model->top->eval();
    if (waves) {
        model->waves->dump(now_ps + half_period_ps);
    }
}

static bool trace_model(struct hdl_model *model, const char *path, uint64_t from_ps, uint64_t to_ps)
{
    model->waves_from_ps = from_ps;
    model->waves_to_ps = to_ps;
    model->waves = new VerilatedFstC;
    model->waves->set_time_unit("1ps");
    model->waves->set_time_resolution("1ps");
    model->top->trace(model->waves, 99);
    model->waves->open(path);
    return model->waves->isOpen();
}

static bool finished_model(const struct hdl_model *model)
{
    return model->context.gotFinish();
}

static void close_model(struct hdl_model *model)
{
    model->top->final();
    if (model->waves != nullptr) {
        model->waves->close();
        delete model->waves;
    }
    delete model->top;
    delete model;
}

extern "C" __attribute__((visibility("default"))) const struct hdl_model_ops *nonic_hdl_model(void)
{
    static const struct hdl_model_ops ops = {
        HDL_ABI,     sizeof(struct hdl_in), sizeof(struct hdl_out), TEXT(HDL_NAME), open_model,     reset_model,
        step_model,  trace_model, finished_model, close_model,
    };
    return &ops;
}
