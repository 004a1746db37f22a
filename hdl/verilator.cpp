// SPDX-License-Identifier: BSD-2-Clause
//
// A design compiled by Verilator as a model (hdl/model.h). `nonic hdl build` compiles it with each
// design, which Verilator calls Vdesign; HDL_NAME is the name of its top module.
#include "Vdesign.h"
#include "verilated.h"
#include "verilated_fst_c.h"

#include <algorithm>

#include "hdl/dpi.h"
#include "hdl/port.h"

#define FS_PER_PS     1000
#define TEXT_OF(name) #name
#define TEXT(name)    TEXT_OF(name)

namespace {
// clk2 of a design that has it.
template <class Top, class = void> struct Second {
    static constexpr uint32_t clocks = 1;
    static void set(Top *, bool) {}
};
template <class Top> struct Second<Top, decltype(void(Top::clk2))> {
    static constexpr uint32_t clocks = 2;
    static void set(Top *top, bool high) { top->clk2 = high; }
};
} // namespace

struct hdl_model {
    VerilatedContext context;
    Vdesign *top;
    uint64_t falls_ps[HDL_CLOCKS_MAX]; // UINT64_MAX: the clock is low.
    VerilatedFstC *waves;
    uint64_t waves_from_ps, waves_to_ps;
    struct hdl_attached attached;
};

static void set_clocks(struct hdl_model *model, uint32_t clocks, bool high)
{
    if (clocks & 1) {
        model->top->clk = high;
    }
    if (clocks & 2) {
        Second<Vdesign>::set(model->top, high);
    }
}

static void evaluate(struct hdl_model *model, uint64_t now_ps)
{
    model->context.time(now_ps);
    model->top->eval();
    if (model->waves != nullptr && now_ps >= model->waves_from_ps && now_ps < model->waves_to_ps) {
        model->waves->dump(now_ps);
    }
}

static void lower_due(struct hdl_model *model, uint64_t now_ps)
{
    for (uint32_t i = 0; i < HDL_CLOCKS_MAX; i++) {
        if (model->falls_ps[i] == now_ps) {
            set_clocks(model, 1u << i, false);
            model->falls_ps[i] = UINT64_MAX;
        }
    }
}

// Clocks fall that are to do so before a time, in the order of their times.
static void fall(struct hdl_model *model, uint64_t before_ps)
{
    for (;;) {
        const uint64_t now_ps = *std::min_element(model->falls_ps, model->falls_ps + HDL_CLOCKS_MAX);
        if (now_ps >= before_ps) {
            return;
        }
        lower_due(model, now_ps);
        evaluate(model, now_ps);
    }
}

static struct hdl_model *open_model(const struct hdl_model_ops *, const struct hdl_host *host,
                                    uint64_t seed)
{
    hdl_model *model = new hdl_model;
    model->waves = nullptr;
    model->attached.host = host;
    model->attached.refused = false;
    std::fill_n(model->falls_ps, HDL_CLOCKS_MAX, UINT64_MAX);
    model->attached.now_ps = 0;
    model->context.randSeed(static_cast<int>(seed | 1));
    model->context.randReset(2);
    model->context.traceEverOn(true);
    model->top = new Vdesign{&model->context, ""};
    hdl_attach_to(&model->attached);
    set_clocks(model, 3, false);
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
static void step_model(struct hdl_model *model, uint64_t now_ps, uint32_t clocks)
{
    fall(model, now_ps);
    lower_due(model, now_ps);
    model->attached.now_ps = now_ps;
    for (uint32_t i = 0; i < HDL_CLOCKS_MAX; i++) {
        if (clocks >> i & 1) {
            model->falls_ps[i] = now_ps + model->attached.host->period_fs[i] / (2 * FS_PER_PS);
        }
    }
    set_clocks(model, clocks, true);
    evaluate(model, now_ps);
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
    fall(model, UINT64_MAX);
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
        HDL_ABI,        sizeof(struct hdl_in),    sizeof(struct hdl_out),
        TEXT(HDL_NAME), Second<Vdesign>::clocks,  open_model,
        reset_model,    step_model,               trace_model,
        finished_model, close_model,
    };
    return &ops;
}
