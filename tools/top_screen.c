/* SPDX-License-Identifier: BSD-2-Clause
 *
 * top_screen - the pictures on a terminal, and keys.
 */
#include <curses.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "tools/top.h"

enum {
    LINE_BYTES = 1024,
    ROWS_BESIDE = 5, /* Lines of a screen that are no rows. */
    ROWS_ABOVE = 3,
    OTHERS_WIDTH = 79, /* A line without its name. */
    WAIT_MS = 100,
    KEY_ESCAPE = 27,
    KEY_RETURN = '\n',
    KEY_CONTROL_L = 12,
};

enum mode {
    MODE_LIST,
    MODE_FILTER, /* A filter is being typed. */
    MODE_HELP,
};

struct screen {
    const struct stat_named *named;
    unsigned seconds;
    struct top_order order;
    struct top_look looks[2], next; /* `next` is the thread's, while there is one. */
    unsigned look_count;
    pthread_t looker; /* A program that does not answer keeps it waiting, and not the keys. */
    bool is_looking;
    atomic_bool has_looked;
    json_t *picture;
    struct top_row *rows;
    size_t count, selected, first;
    struct timespec looked_at;
    enum mode mode;
    bool is_paused;
};

static const char help[] =
    "Up, Down, PgUp, PgDn, Home, End   choose a line; what is known of it stands below\n"
    "<  >  F6                          sort by another column\n"
    "I                                 the other way round\n"
    "F4  \\                             show programs with this in their name, or this number\n"
    "t                                 show queue pairs, or programs alone\n"
    "Space  Z                          pause, go on\n"
    "Control-L                         draw all of it again\n"
    "h  ?  F1                          this\n"
    "q  F10                            leave\n\n"
    "SENT, RECVD   bytes of payload per second\n"
    "MSGS, RECVS   requests that were sent or are done, and receives that were used, per second\n"
    "AGAIN         packets that were sent again; of a connection: losses\n"
    "RNR           times that a receiver was not ready\n"
    "DROP          packets that came and were dropped\n"
    "WAITS         how many queue pairs stand still, or what one waits for (man nonic-stat)\n";

/* -- The picture --------------------------------------------------------------------------------*/

static void order_rows(struct screen *screen)
{
    free(screen->rows);
    screen->count = top_rows(screen->picture, &screen->order, &screen->rows);
    screen->selected = screen->count == 0                  ? 0
                       : screen->selected >= screen->count ? screen->count - 1
                                                           : screen->selected;
}

static void *look(void *context)
{
    struct screen *screen = context;
    top_look(&screen->next);
    atomic_store(&screen->has_looked, true);
    return NULL;
}

static void begin_look(struct screen *screen)
{
    clock_gettime(CLOCK_MONOTONIC, &screen->looked_at);
    atomic_store(&screen->has_looked, false);
    screen->is_looking = pthread_create(&screen->looker, NULL, look, screen) == 0;
}

static void end_look(struct screen *screen)
{
    pthread_join(screen->looker, NULL);
    screen->is_looking = false;
    screen->look_count++;
    top_forget(&screen->looks[0]); /* An empty one at first. */
    screen->looks[0] = screen->looks[1];
    screen->looks[1] = screen->next;
    if (screen->look_count < 2) {
        return;
    }
    json_t *picture = top_compare(&screen->looks[0], &screen->looks[1], screen->named);
    json_t *before = screen->picture;
    screen->picture = picture;
    order_rows(screen);
    json_decref(before);
}

static bool is_due(const struct screen *screen)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const double passed = (double)(now.tv_sec - screen->looked_at.tv_sec) +
                          (double)(now.tv_nsec - screen->looked_at.tv_nsec) / 1e9;
    return !screen->is_looking && !screen->is_paused && passed >= screen->seconds;
}

/* -- Drawing ------------------------------------------------------------------------------------*/

static size_t room(void)
{
    return LINES > ROWS_BESIDE ? (size_t)(LINES - ROWS_BESIDE) : 1;
}

static void draw_line(int y, const char *text)
{
    mvaddnstr(y, 0, text, COLS);
    clrtoeol();
}

static void draw_rows(const struct screen *screen, int name_characters)
{
    char line[LINE_BYTES];
    for (size_t i = 0; i < room(); i++) {
        const size_t at = screen->first + i;
        line[0] = '\0';
        if (at < screen->count) {
            top_write_row(line, sizeof(line), &screen->rows[at], name_characters);
            attrset(at == screen->selected                ? A_REVERSE
                    : screen->rows[at].queue_pair == NULL ? A_BOLD
                                                          : A_NORMAL);
        }
        draw_line(ROWS_ABOVE + (int)i, line);
        attrset(A_NORMAL);
    }
}

static void write_state(const struct screen *screen, char *line, size_t bytes)
{
    if (screen->mode == MODE_FILTER) {
        snprintf(line, bytes, "Filter: %s_   (Enter: keep it, Esc: all programs)",
                 screen->order.filter);
    } else if (screen->order.filter[0] != '\0') {
        snprintf(line, bytes, "Filter: %s%s", screen->order.filter,
                 screen->is_paused ? "   PAUSED" : "");
    } else {
        snprintf(line, bytes, "%s",
                 screen->is_paused        ? "PAUSED"
                 : screen->look_count < 2 ? "Looking twice ..."
                 : screen->count == 0     ? "No program of yours runs on nonic."
                                          : "");
    }
}

static void draw_list(struct screen *screen)
{
    char line[LINE_BYTES] = "";
    const int spare = COLS - OTHERS_WIDTH;
    const int wanted = top_name_characters(screen->rows, screen->count);
    const int name_characters = wanted <= TOP_NAME_LEAST || spare <= TOP_NAME_LEAST ? TOP_NAME_LEAST
                                : wanted < spare                                    ? wanted
                                                                                    : spare;
    if (screen->selected < screen->first) {
        screen->first = screen->selected;
    } else if (screen->selected >= screen->first + room()) {
        screen->first = screen->selected - room() + 1;
    }
    top_write_sum(line, sizeof(line), screen->picture);
    draw_line(0, line);
    write_state(screen, line, sizeof(line));
    draw_line(1, line);
    top_write_head(line, sizeof(line), &screen->order, name_characters);
    attrset(A_REVERSE);
    draw_line(2, line);
    attrset(A_NORMAL);
    draw_rows(screen, name_characters);
    line[0] = '\0';
    if (screen->count > 0) {
        top_write_detail(line, sizeof(line), &screen->rows[screen->selected]);
    }
    draw_line(LINES - 2, line);
}

static void draw(struct screen *screen)
{
    if (screen->mode == MODE_HELP) {
        erase();
        mvaddstr(0, 0, help);
    } else {
        draw_list(screen);
    }
    attrset(A_REVERSE);
    draw_line(LINES - 1, "F1 help  F4 filter  F6 sort  t queue pairs  Space pause  F10 quit");
    attrset(A_NORMAL);
    refresh();
}

/* -- Keys ---------------------------------------------------------------------------------------*/

static void move_by(struct screen *screen, long step)
{
    const long last = screen->count == 0 ? 0 : (long)screen->count - 1;
    const long at = (long)screen->selected + step;
    screen->selected = (size_t)(at < 0 ? 0 : at > last ? last : at);
}

static void sort_by(struct screen *screen, unsigned step)
{
    screen->order.column = (enum top_column)(((unsigned)screen->order.column + step) % TOP_COLUMNS);
    order_rows(screen);
}

static void on_filter_key(struct screen *screen, int key)
{
    char *filter = screen->order.filter;
    const size_t length = strlen(filter);
    if (key == KEY_RETURN || key == KEY_ENTER) {
        screen->mode = MODE_LIST;
    } else if (key == KEY_ESCAPE) {
        filter[0] = '\0';
        screen->mode = MODE_LIST;
    } else if ((key == KEY_BACKSPACE || key == 127 || key == '\b') && length > 0) {
        filter[length - 1] = '\0';
    } else if (key > ' ' && key <= '~' && length + 1 < sizeof(screen->order.filter)) {
        filter[length] = (char)key;
        filter[length + 1] = '\0';
    }
    order_rows(screen);
}

/* False: the user leaves. */
static bool on_list_key(struct screen *screen, int key)
{
    switch (key) {
    case KEY_UP: move_by(screen, -1); break;
    case KEY_DOWN: move_by(screen, 1); break;
    case KEY_PPAGE: move_by(screen, -(long)room()); break;
    case KEY_NPAGE: move_by(screen, (long)room()); break;
    case KEY_HOME: screen->selected = 0; break;
    case KEY_END: move_by(screen, (long)screen->count); break;
    case '<':
    case ',': sort_by(screen, TOP_COLUMNS - 1); break;
    case '>':
    case '.':
    case KEY_F(6): sort_by(screen, 1); break;
    case 'I':
        screen->order.is_reverse = !screen->order.is_reverse;
        order_rows(screen);
        break;
    case 't':
        screen->order.hides_queue_pairs = !screen->order.hides_queue_pairs;
        order_rows(screen);
        break;
    case KEY_CONTROL_L: clearok(stdscr, true); break;
    case ' ':
    case 'Z': screen->is_paused = !screen->is_paused; break;
    case '\\':
    case '/':
    case KEY_F(4): screen->mode = MODE_FILTER; break;
    case 'h':
    case '?':
    case KEY_F(1): screen->mode = MODE_HELP; break;
    case 'q':
    case KEY_F(10): return false;
    default: break;
    }
    return true;
}

static bool on_key(struct screen *screen, int key)
{
    switch (screen->mode) {
    case MODE_FILTER: on_filter_key(screen, key); return true;
    case MODE_HELP:
        screen->mode = key == KEY_RESIZE ? MODE_HELP : MODE_LIST;
        erase();
        return true;
    case MODE_LIST: break;
    }
    return on_list_key(screen, key);
}

/* -- All ----------------------------------------------------------------------------------------*/

static volatile sig_atomic_t is_ended;

static void on_signal(int number)
{
    (void)number;
    is_ended = 1;
}

/* False: the terminal is of an unknown kind, and that is printed. */
static bool begin_screen(void)
{
    setlocale(LC_ALL, "");
    SCREEN *terminal = newterm(NULL, stdout, stdin);
    if (terminal == NULL) {
        const char *name = getenv("TERM");
        fprintf(stderr, "nonic: the terminal is of an unknown kind (TERM=%s)\n",
                name == NULL ? "" : name);
        return false;
    }
    set_term(terminal);
    cbreak();
    noecho();
    keypad(stdscr, true);
    set_escdelay(25);
    curs_set(0);
    timeout(WAIT_MS);
    /* Signals that end a program restore the terminal first. */
    const struct sigaction ends = {.sa_handler = on_signal};
    sigaction(SIGINT, &ends, NULL);
    sigaction(SIGTERM, &ends, NULL);
    sigaction(SIGHUP, &ends, NULL);
    return true;
}

int top_screen(const struct stat_named *named, unsigned seconds)
{
    struct screen screen = {.named = named, .seconds = seconds, .order = {.column = TOP_SENT}};
    bool goes_on = true;
    if (!begin_screen()) {
        return 1;
    }
    screen.picture = json_array();
    order_rows(&screen);
    begin_look(&screen);
    while (goes_on && !is_ended) {
        draw(&screen);
        const int key = getch();
        if (key != ERR) {
            goes_on = on_key(&screen, key);
        }
        if (screen.is_looking && atomic_load(&screen.has_looked)) {
            end_look(&screen);
        } else if (is_due(&screen)) {
            begin_look(&screen);
        }
    }
    endwin();
    if (screen.is_looking) {
        end_look(&screen);
    }
    free(screen.rows);
    json_decref(screen.picture);
    for (unsigned i = 0; i < 2; i++) {
        top_forget(&screen.looks[i]);
    }
    return 0;
}
